-- GPU hours of all runs: used, lost to causes, and spent in runs that failed.
SELECT count(*) AS runs, count(DISTINCT job) AS jobs, count(DISTINCT team) AS teams, sum(gpu_s) / 3600 AS gpu_h,
       sum(CASE WHEN class IS NOT NULL THEN gpu_s END) / 3600 AS judged_gpu_h,
       count(CASE WHEN ended IN ('signal', 'killed') OR code <> 0 THEN 1 END) AS failed_runs,
       sum(CASE WHEN ended IN ('signal', 'killed') OR code <> 0 THEN gpu_s END) / 3600 AS failed_gpu_h,
       (SELECT sum(blocked_gpu_s) / 3600 FROM losses WHERE kind = 'cause') AS lost_gpu_h,
       CAST(min(start_utc) AS DATE) AS first_day, CAST(max(start_utc) AS DATE) AS last_day
FROM runs
