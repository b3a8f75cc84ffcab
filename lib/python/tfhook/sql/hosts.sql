-- Hosts that are slow in every job. A host's own time of a step is compared with the median of the run's hosts, in units of
-- the usual spread: of the run, of all runs, or half a percent, whichever is greatest. A run counts for 3 units at most, so
-- three jobs are needed. lost_gpu_h: what the runs would have saved if the host had been as fast as the next slowest.
WITH spread AS (SELECT run, 1.4826 * median(abs(slower)) AS spread FROM host_steps GROUP BY run),
usual AS (SELECT median(spread) AS spread FROM spread)
SELECT h.host, count(DISTINCT h.job) AS jobs, count(*) AS runs, avg(h.slower) AS slower, min(h.slower) AS at_least,
       sum(CASE WHEN h.place = 1 THEN h.ahead_s * h.gpu_steps ELSE 0 END) / 3600 AS lost_gpu_h
FROM host_steps AS h JOIN spread ON h.run = spread.run CROSS JOIN usual
GROUP BY h.host
HAVING count(DISTINCT h.job) >= 3 AND avg(h.slower) > 0.02 AND avg(CASE WHEN h.slower > 0 THEN 1.0 ELSE 0.0 END) >= 0.9
       AND sum(least(h.slower / greatest(spread.spread, usual.spread, 0.005), 3)) / sqrt(count(*)) >= 5
ORDER BY lost_gpu_h DESC, slower DESC, host
LIMIT 100
