-- GPU hours lost by cause. gain_low_h is certain to be gained without the cause, gain_high_h at best.
SELECT cause, sum(blocked_gpu_s) / 3600 AS lost_gpu_h, sum(gain_low_gpu_s) / 3600 AS gain_low_h,
       sum(gain_high_gpu_s) / 3600 AS gain_high_h, count(DISTINCT run) AS runs, count(DISTINCT job) AS jobs
FROM losses
WHERE kind = 'cause'
GROUP BY cause
ORDER BY lost_gpu_h DESC, cause
