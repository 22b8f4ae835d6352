-- Tables for the kernel's tests: one as a domain keeps it, one derived from events, one for bookkeeping.
CREATE SCHEMA toy;
GRANT USAGE ON SCHEMA toy TO ${app}, ${reader}, ${relay};

CREATE TABLE toy.thing (
    id          uuid   PRIMARY KEY,
    org_id      uuid   NOT NULL,
    name        text   NOT NULL COLLATE "C",
    generation  bigint NOT NULL DEFAULT 1,
    CONSTRAINT thing_name_once UNIQUE (org_id, name)
);
CREATE TABLE toy.tally (
    org_id      uuid   PRIMARY KEY,
    things      bigint NOT NULL
);
CREATE TABLE toy.mark (
    name        text   PRIMARY KEY COLLATE "C",
    value       bigint NOT NULL
);

CALL spine.wall('toy.thing', 'ALL', '${app}', '${reader}');
CALL spine.wall('toy.tally', 'ALL', '${app}', '${reader}');

GRANT SELECT, INSERT, UPDATE, DELETE ON toy.thing, toy.tally, toy.mark TO ${app};
GRANT SELECT ON toy.thing, toy.tally TO ${reader};
