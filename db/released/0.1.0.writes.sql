-- An organization is created, as 0.1.0 does it: scope, row, audit entry and event, the kept answer. {n} is a number.
BEGIN;
SELECT set_config('gpuaas.org', '', false), set_config('gpuaas.platform', 'on', false);
SELECT pg_advisory_xact_lock({n});
INSERT INTO iam.organization (id, name, name_key, labels, state, state_since, created_at, updated_at)
VALUES (lpad('{n}', 32, '0')::uuid, 'Organization {n}', 'organization {n}', '{}', 'active', now(), now(), now());
WITH entry AS (
    INSERT INTO spine.audit_entry (id, at, org_id, project_id, actor_kind, actor_id, behalf_kind, behalf_id, action,
        resource_kind, resource_id, generation, before, after, correlation_id, causation_id, policy_version)
    VALUES (gen_random_uuid(), now(), lpad('{n}', 32, '0')::uuid, NULL, 'user', 'op_1', NULL, NULL, 'iam.organization.create',
        'organization', 'org_{n}', 1, NULL, '{}', gen_random_uuid(), NULL, 1)
)
INSERT INTO spine.outbox (id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent)
VALUES (gen_random_uuid(), now(), lpad('{n}', 32, '0')::uuid, NULL, 'gpuaas.iam.organization.created', 'org_{n}', 1, '{}',
    gen_random_uuid(), NULL, NULL);
INSERT INTO spine.idempotency (actor, operation, key_hash, at, body_hash, result)
VALUES ('User:op_1', 'organizations.create', sha256('{n}'::bytea), now(), sha256('{n}'::bytea), '{}');
INSERT INTO iam.project (id, org_id, name, name_key, labels, state, state_since, created_at, updated_at)
VALUES (gen_random_uuid(), lpad('{n}', 32, '0')::uuid, 'default', 'default', '{}', 'active', now(), now(), now());
COMMIT;
