-- Jobs that became slower with an image. A change is listed if it is above 2 % and beyond what chance shows once in
-- 300,000 comparisons: 4.5 standard errors, more where there are few runs (Student's distribution, expanded). low and
-- high hold the change with 95 %.
SELECT team, job, old_image, image AS new_image, old_n AS old_runs, n AS new_runs, exp(change) - 1 AS slower,
       exp(change - off * (1.96 + 2.372 / freedom + 2.823 / (freedom * freedom))) - 1 AS low,
       exp(change + off * (1.96 + 2.372 / freedom + 2.823 / (freedom * freedom))) - 1 AS high,
       gpu_s * (1 - exp(-change)) / 3600 AS lost_gpu_h, CAST(first_utc AS DATE) AS first_day
FROM image_pairs
WHERE change > 0.02 AND change > off * (4.5 + 23.906 / freedom + 111.436 / (freedom * freedom))
ORDER BY lost_gpu_h DESC, team, job, new_image
LIMIT 100
