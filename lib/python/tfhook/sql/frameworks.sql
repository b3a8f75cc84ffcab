-- GPU hours used and lost by framework, and the cause that loses most there.
WITH used AS (SELECT framework, sum(gpu_s) / 3600 AS gpu_h, count(*) AS runs FROM runs GROUP BY framework),
by_cause AS (SELECT framework, cause, sum(blocked_gpu_s) / 3600 AS h FROM losses WHERE kind = 'cause' GROUP BY framework, cause),
lost AS (SELECT framework, sum(h) AS lost_gpu_h, max_by(cause, h) AS cause, max(h) AS cause_gpu_h FROM by_cause GROUP BY framework)
SELECT used.framework, used.runs, used.gpu_h, lost.lost_gpu_h, lost.cause, lost.cause_gpu_h
FROM used LEFT JOIN lost ON used.framework = lost.framework
ORDER BY coalesce(lost.lost_gpu_h, 0) DESC, used.gpu_h DESC, used.framework
