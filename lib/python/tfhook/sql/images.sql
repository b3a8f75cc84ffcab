-- GPU hours used and lost by image, and the cause that loses most there.
WITH used AS (SELECT image, sum(gpu_s) / 3600 AS gpu_h, count(*) AS runs FROM runs GROUP BY image),
by_cause AS (SELECT image, cause, sum(blocked_gpu_s) / 3600 AS h FROM losses WHERE kind = 'cause' GROUP BY image, cause),
lost AS (SELECT image, sum(h) AS lost_gpu_h, max_by(cause, h) AS cause, max(h) AS cause_gpu_h FROM by_cause GROUP BY image)
SELECT used.image, used.runs, used.gpu_h, lost.lost_gpu_h, lost.cause, lost.cause_gpu_h
FROM used LEFT JOIN lost ON used.image = lost.image
ORDER BY coalesce(lost.lost_gpu_h, 0) DESC, used.gpu_h DESC, used.image
