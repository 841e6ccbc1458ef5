-- An invented register of people, for the study beside this file. No one in it is real.
--   psql registry -f people.sql

DROP TABLE IF EXISTS people;
SELECT setseed(0.42);
CREATE TABLE people AS
WITH drawn AS (
    SELECT id,
           floor(random() * 90)::integer AS age,
           random() AS marriage,
           random() AS work,
           (ARRAY['Espoo', 'Helsinki', 'Oulu', 'Rovaniemi', 'Tampere', 'Turku'])[1 + floor(random() * 6)::integer] AS city
    FROM generate_series(1, 20000) AS id
)
SELECT id,
       age,
       CASE WHEN age < 15 OR marriage < 0.4 THEN 'single' WHEN marriage < 0.85 THEN 'married' ELSE 'widowed' END AS marital,
       CASE WHEN age < 15 THEN NULL ELSE work < 0.2 + 0.5 * (age BETWEEN 25 AND 64)::integer END AS employed,
       city,
       CASE WHEN city IN ('Espoo', 'Helsinki') THEN 'south'
            WHEN city IN ('Oulu', 'Rovaniemi') THEN 'north'
            ELSE 'west' END AS region
FROM drawn;
