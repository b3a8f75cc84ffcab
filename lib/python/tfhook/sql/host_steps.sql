-- View: the same beside the median of the hosts, of runs with four hosts or more. ahead_s: what a host takes longer than
-- the next slowest.
SELECT own.run, own.host, own.job, own.gpu_steps, own.own_s / middle.own_s - 1 AS slower,
       own.own_s - lead(own.own_s) OVER slowest_first AS ahead_s, row_number() OVER slowest_first AS place
FROM host_own AS own JOIN (SELECT run, median(own_s) AS own_s FROM host_own GROUP BY run HAVING count(*) >= 4) AS middle
     ON own.run = middle.run
WINDOW slowest_first AS (PARTITION BY own.run ORDER BY own.own_s DESC, own.host)
