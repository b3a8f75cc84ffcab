-- Jobs to look at first: by what removing one cause is certain to gain, then by what it gains at best. Of equals, max_by() gives any; so the
-- value itself decides, for all engines alike.
WITH used AS (SELECT team, job, count(*) AS runs, sum(gpu_s) / 3600 AS gpu_h, max_by(path, (start_utc, path)) AS newest FROM runs GROUP BY team, job),
by_cause AS (SELECT team, job, cause, sum(blocked_gpu_s) / 3600 AS lost_gpu_h, sum(gain_low_gpu_s) / 3600 AS gain_low_h,
                    sum(gain_gpu_s) / 3600 AS gain_h, sum(gain_high_gpu_s) / 3600 AS gain_high_h,
                    max_by(confidence, (gain_high_gpu_s, confidence)) AS confidence
             FROM losses
             WHERE kind = 'cause' AND gain_high_gpu_s > 0
             GROUP BY team, job, cause),
best AS (SELECT *, row_number() OVER (PARTITION BY team, job ORDER BY gain_low_h DESC, gain_high_h DESC, cause) AS place FROM by_cause),
by_line AS (SELECT team, job, cause, file, line, sum(blocked_gpu_s) AS blocked_gpu_s
            FROM losses WHERE kind = 'line' GROUP BY team, job, cause, file, line),
lines AS (SELECT *, row_number() OVER (PARTITION BY team, job, cause ORDER BY blocked_gpu_s DESC, file, line) AS place FROM by_line)
SELECT best.team, best.job, used.runs, used.gpu_h, best.cause, best.confidence, lines.file, lines.line, best.lost_gpu_h,
       best.gain_low_h, best.gain_h, best.gain_high_h, used.newest
FROM best JOIN used ON best.team = used.team AND best.job = used.job
     LEFT JOIN lines ON best.team = lines.team AND best.job = lines.job AND best.cause = lines.cause AND lines.place = 1
WHERE best.place = 1
ORDER BY best.gain_low_h DESC, best.gain_high_h DESC, best.team, best.job
LIMIT 100
