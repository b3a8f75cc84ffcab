-- Images that made their jobs slower: the mean over all jobs that ran under both, by the rule of regressions.sql for the
-- mean, above 1 %. slower_jobs, faster_jobs: those that are beyond chance by themselves.
SELECT *, exp(change) - 1 AS slower, 1.96 * off AS plus_minus
FROM (SELECT old_image, image AS new_image, count(*) AS jobs,
             count(CASE WHEN change > off * (4.5 + 23.906 / freedom + 111.436 / (freedom * freedom)) THEN 1 END) AS slower_jobs,
             count(CASE WHEN -change > off * (4.5 + 23.906 / freedom + 111.436 / (freedom * freedom)) THEN 1 END) AS faster_jobs,
             avg(change) AS change, sqrt(sum(off * off)) / count(*) AS off, sum(freedom) AS freedom,
             sum(gpu_s * (1 - exp(-change))) / 3600 AS lost_gpu_h, CAST(min(first_utc) AS DATE) AS first_day
      FROM image_pairs
      GROUP BY old_image, image
      HAVING count(*) >= 3) AS by_pair
WHERE change > 0.01 AND change > off * (4.5 + 23.906 / freedom + 111.436 / (freedom * freedom))
ORDER BY lost_gpu_h DESC, new_image, old_image
LIMIT 100
