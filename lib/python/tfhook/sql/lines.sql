-- GPU hours lost by line of the program.
SELECT file, line, max(function) AS function, max_by(cause, (blocked_gpu_s, cause)) AS cause, sum(blocked_gpu_s) / 3600 AS lost_gpu_h,
       sum(gain_low_gpu_s) / 3600 AS gain_low_h, sum(gain_high_gpu_s) / 3600 AS gain_high_h, count(DISTINCT run) AS runs,
       count(DISTINCT job) AS jobs
FROM losses
WHERE kind = 'line'
GROUP BY file, line
ORDER BY lost_gpu_h DESC, file, line
LIMIT 100
