-- GPU hours used and lost by team, and the cause that loses most there.
WITH used AS (SELECT team, sum(gpu_s) / 3600 AS gpu_h, count(*) AS runs FROM runs GROUP BY team),
by_cause AS (SELECT team, cause, sum(blocked_gpu_s) / 3600 AS h FROM losses WHERE kind = 'cause' GROUP BY team, cause),
lost AS (SELECT team, sum(h) AS lost_gpu_h, max_by(cause, h) AS cause, max(h) AS cause_gpu_h FROM by_cause GROUP BY team)
SELECT used.team, used.runs, used.gpu_h, lost.lost_gpu_h, lost.cause, lost.cause_gpu_h
FROM used LEFT JOIN lost ON used.team = lost.team
ORDER BY coalesce(lost.lost_gpu_h, 0) DESC, used.gpu_h DESC, used.team
