--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: audit; Type: SCHEMA; Schema: -; Owner: ${owner}
--

CREATE SCHEMA audit;


ALTER SCHEMA audit OWNER TO ${owner};

--
-- Name: iam; Type: SCHEMA; Schema: -; Owner: ${owner}
--

CREATE SCHEMA iam;


ALTER SCHEMA iam OWNER TO ${owner};

--
-- Name: secrets; Type: SCHEMA; Schema: -; Owner: ${owner}
--

CREATE SCHEMA secrets;


ALTER SCHEMA secrets OWNER TO ${owner};

--
-- Name: spine; Type: SCHEMA; Schema: -; Owner: ${owner}
--

CREATE SCHEMA spine;


ALTER SCHEMA spine OWNER TO ${owner};

--
-- Name: partition_drop(text, timestamp with time zone, timestamp with time zone, bigint, bigint, timestamp with time zone); Type: FUNCTION; Schema: audit; Owner: ${owner}
--

CREATE FUNCTION audit.partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $$
DECLARE
    present bigint;
BEGIN
    PERFORM FROM audit.entry_partition p WHERE p.name = partition AND p.lower_at = from_at AND p.upper_at = to_at;
    IF NOT FOUND OR to_at > now() - interval '30 days' THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: not a partition, or not old', partition;
    END IF;
    PERFORM FROM audit.delivery d WHERE d.name = 'replica' AND d.size > last_index;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: not copied elsewhere', partition;
    END IF;
    EXECUTE format('LOCK TABLE spine.%I IN SHARE MODE', partition);
    EXECUTE format('SELECT count(*) FROM spine.%I', partition) INTO present;
    IF present <> compared THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: there are %, and % were compared', partition, present, compared;
    END IF;
    INSERT INTO audit.pruned (lower_at, upper_at, entries, last_index, at)
    VALUES (from_at, to_at, compared, partition_drop.last_index, now_at);
    EXECUTE format('ALTER TABLE spine.audit_entry DETACH PARTITION spine.%I', partition);
    EXECUTE format('DROP TABLE spine.%I', partition);
END $$;


ALTER FUNCTION audit.partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone) OWNER TO ${owner};

--
-- Name: refuse_shrink(); Type: FUNCTION; Schema: audit; Owner: ${owner}
--

CREATE FUNCTION audit.refuse_shrink() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.size < OLD.size THEN
        RAISE EXCEPTION 'audit.tree only grows: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;


ALTER FUNCTION audit.refuse_shrink() OWNER TO ${owner};

--
-- Name: partition_make(text, text, timestamp with time zone, timestamp with time zone, text); Type: FUNCTION; Schema: spine; Owner: ${owner}
--

CREATE FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $_$
DECLARE
    name text := format('%s_%s', parent, suffix);
    strays boolean;
BEGIN
    IF parent NOT IN ('audit_entry', 'outbox', 'log', 'idempotency') THEN
        RAISE EXCEPTION 'no partitions are made for %', parent;
    END IF;
    IF to_regclass(format('spine.%I', name)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM spine.%I WHERE %I >= $1 AND %I < $2)',
        parent || '_default', column_name, column_name) INTO strays USING lower_at, upper_at;
    IF strays THEN
        RETURN false;
    END IF;
    -- LIKE + ATTACH takes a weaker lock on the parent than CREATE … PARTITION OF.
    EXECUTE format('CREATE TABLE spine.%I (LIKE spine.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
    EXECUTE format('ALTER TABLE spine.%I ATTACH PARTITION spine.%I FOR VALUES FROM (%L) TO (%L)', parent, name, lower_at, upper_at);
    IF parent = 'audit_entry' THEN
        EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.%I
            FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite()', name);
    END IF;
    RETURN true;
END $_$;


ALTER FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text) OWNER TO ${owner};

--
-- Name: partition_prune(text, text, timestamp with time zone); Type: FUNCTION; Schema: spine; Owner: ${owner}
--

CREATE FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog'
    SET lock_timeout TO '200ms'
    AS $_$
DECLARE
    child text;
    waiting boolean;
    -- Subqueries that do not look at the row: they are asked once, and the primary keys find the rest.
    unread text := CASE parent
        WHEN 'outbox' THEN 'r.xid >= (SELECT done_xid FROM spine.sequencer)
                            AND (r.xid, r.id) > (SELECT done_xid, done_id FROM spine.sequencer)'
        WHEN 'log' THEN 'r.position > (SELECT min(c.position) FROM spine.consumer c)'
        ELSE 'false' END;
    keep_min interval := CASE parent WHEN 'idempotency' THEN '24 hours' ELSE '1 hour' END;
BEGIN
    before_at := least(before_at, now() - keep_min);
    -- Not the audit log: it may go only when it is sealed and copied elsewhere, which is not this caller's to judge.
    IF parent NOT IN ('outbox', 'log', 'idempotency') THEN
        RAISE EXCEPTION 'no partitions are pruned for %', parent;
    END IF;
    FOR child IN
        SELECT name FROM (
            SELECT c.relname AS name, substring(pg_get_expr(c.relpartbound, c.oid) from $re$TO \('([^']+)'\)$re$)::timestamptz AS upper_at
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = format('spine.%I', parent)::regclass AND c.relname <> parent || '_default'
        ) AS partition WHERE upper_at <= before_at ORDER BY upper_at
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM spine.%I r WHERE %s)', child, unread) INTO waiting;
        IF NOT waiting THEN
            EXECUTE format('ALTER TABLE spine.%I DETACH PARTITION spine.%I', parent, child);
            EXECUTE format('DROP TABLE spine.%I', child);
            RETURN true;
        END IF;
    END LOOP;
    EXECUTE format('DELETE FROM spine.%I r WHERE r.%I < $1 AND (%s) IS NOT TRUE', parent || '_default', column_name, unread)
        USING before_at;
    RETURN false;
END $_$;


ALTER FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamp with time zone) OWNER TO ${owner};

--
-- Name: refuse_rewrite(); Type: FUNCTION; Schema: spine; Owner: ${owner}
--

CREATE FUNCTION spine.refuse_rewrite() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;


ALTER FUNCTION spine.refuse_rewrite() OWNER TO ${owner};

--
-- Name: wall(regclass, text, name[]); Type: PROCEDURE; Schema: spine; Owner: ${owner}
--

CREATE PROCEDURE spine.wall(IN walled regclass, IN command text, VARIADIC logins name[])
    LANGUAGE plpgsql
    AS $_$
DECLARE
    who text := (SELECT string_agg(quote_ident(login), ', ') FROM unnest(logins) login);
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', walled);
    EXECUTE format($policy$
        CREATE POLICY tenant ON %s FOR %s TO %s USING (
            org_id = (SELECT nullif(current_setting('gpuaas.org', true), '')::uuid)
            OR (SELECT current_setting('gpuaas.platform', true) = 'on'))$policy$, walled, command, who);
END $_$;


ALTER PROCEDURE spine.wall(IN walled regclass, IN command text, VARIADIC logins name[]) OWNER TO ${owner};

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: checkpoint; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.checkpoint (
    size bigint NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_root_check CHECK ((octet_length(root) = 32))
);


ALTER TABLE audit.checkpoint OWNER TO ${owner};

--
-- Name: delivery; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.delivery (
    name text NOT NULL COLLATE pg_catalog."C",
    size bigint DEFAULT 0 NOT NULL,
    target bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT delivery_check CHECK ((target >= size))
);


ALTER TABLE audit.delivery OWNER TO ${owner};

--
-- Name: audit_entry; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.audit_entry (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    behalf_kind text COLLATE pg_catalog."C",
    behalf_id text COLLATE pg_catalog."C",
    credential text COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    resource_kind text NOT NULL COLLATE pg_catalog."C",
    resource_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    before json,
    after json,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    policy_version bigint NOT NULL
)
PARTITION BY RANGE (at);

ALTER TABLE ONLY spine.audit_entry FORCE ROW LEVEL SECURITY;


ALTER TABLE spine.audit_entry OWNER TO ${owner};

--
-- Name: entry_partition; Type: VIEW; Schema: audit; Owner: ${owner}
--

CREATE VIEW audit.entry_partition AS
 SELECT (c.relname)::text AS name,
    ("substring"(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\)'::text))::timestamp with time zone AS lower_at,
    ("substring"(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'::text))::timestamp with time zone AS upper_at
   FROM (pg_inherits i
     JOIN pg_class c ON ((c.oid = i.inhrelid)))
  WHERE ((i.inhparent = ('spine.audit_entry'::regclass)::oid) AND (pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'::text));


ALTER TABLE audit.entry_partition OWNER TO ${owner};

--
-- Name: era; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.era (
    number integer NOT NULL,
    from_size bigint NOT NULL,
    cluster bigint NOT NULL
);


ALTER TABLE audit.era OWNER TO ${owner};

--
-- Name: leaf; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.leaf (
    index bigint NOT NULL,
    hash bytea NOT NULL,
    era integer NOT NULL,
    xid xid8 NOT NULL,
    entry_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT leaf_hash_check CHECK ((octet_length(hash) = 32))
);


ALTER TABLE audit.leaf OWNER TO ${owner};

--
-- Name: node; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.node (
    level smallint NOT NULL,
    index bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT node_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT node_level_check CHECK ((level > 0))
);


ALTER TABLE audit.node OWNER TO ${owner};

--
-- Name: pruned; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.pruned (
    lower_at timestamp with time zone NOT NULL,
    upper_at timestamp with time zone NOT NULL,
    entries bigint NOT NULL,
    last_index bigint NOT NULL,
    at timestamp with time zone NOT NULL
);


ALTER TABLE audit.pruned OWNER TO ${owner};

--
-- Name: signing_key; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.signing_key (
    from_size bigint NOT NULL,
    verifier_key text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL
);


ALTER TABLE audit.signing_key OWNER TO ${owner};

--
-- Name: tree; Type: TABLE; Schema: audit; Owner: ${owner}
--

CREATE TABLE audit.tree (
    singleton boolean DEFAULT true NOT NULL,
    size bigint DEFAULT 0 NOT NULL,
    frontier bytea DEFAULT '\x0000000000000000'::bytea NOT NULL,
    done_xid xid8 DEFAULT '0'::xid8 NOT NULL,
    done_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    sealed_at timestamp with time zone,
    CONSTRAINT tree_singleton_check CHECK (singleton)
);


ALTER TABLE audit.tree OWNER TO ${owner};

--
-- Name: api_key; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.api_key (
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    actions text[],
    name text NOT NULL,
    key_hash bytea NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_key_check CHECK (((project_id IS NULL) OR (org_id IS NOT NULL)))
);

ALTER TABLE ONLY iam.api_key FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.api_key OWNER TO ${owner};

--
-- Name: invitation; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.invitation (
    id uuid NOT NULL,
    org_id uuid NOT NULL,
    project_id uuid,
    role text NOT NULL COLLATE pg_catalog."C",
    code_hash bytea NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone,
    accepted_by uuid,
    withdrawn_at timestamp with time zone,
    CONSTRAINT invitation_check CHECK ((split_part(role, '.'::text, 1) =
CASE
    WHEN (project_id IS NULL) THEN 'organization'::text
    ELSE 'project'::text
END)),
    CONSTRAINT invitation_check1 CHECK (((accepted_at IS NULL) OR (withdrawn_at IS NULL)))
);

ALTER TABLE ONLY iam.invitation FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.invitation OWNER TO ${owner};

--
-- Name: organization; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.organization (
    id uuid NOT NULL,
    org_id uuid GENERATED ALWAYS AS (id) STORED NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL COLLATE pg_catalog."C",
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    state_since timestamp with time zone NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT organization_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archiving'::text, 'archived'::text])))
);

ALTER TABLE ONLY iam.organization FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.organization OWNER TO ${owner};

--
-- Name: organization_summary; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.organization_summary (
    org_id uuid NOT NULL,
    projects_active bigint NOT NULL,
    projects_archived bigint NOT NULL
);

ALTER TABLE ONLY iam.organization_summary FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.organization_summary OWNER TO ${owner};

--
-- Name: person; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.person (
    id uuid NOT NULL,
    name text NOT NULL,
    email text,
    state text NOT NULL COLLATE pg_catalog."C",
    state_since timestamp with time zone NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT person_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text])))
);

ALTER TABLE ONLY iam.person FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.person OWNER TO ${owner};

--
-- Name: project; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.project (
    id uuid NOT NULL,
    org_id uuid NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL COLLATE pg_catalog."C",
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    state_since timestamp with time zone NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT project_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text])))
);

ALTER TABLE ONLY iam.project FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.project OWNER TO ${owner};

--
-- Name: revocation; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.revocation (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    cluster bigint DEFAULT (pg_control_system()).system_identifier NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    subject uuid NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT revocation_kind_check CHECK ((kind = ANY (ARRAY['credential'::text, 'principal'::text, 'authority'::text, 'organization'::text, 'role'::text, 'provider_session'::text])))
);


ALTER TABLE iam.revocation OWNER TO ${owner};

--
-- Name: revocation_id_seq; Type: SEQUENCE; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.revocation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME iam.revocation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: role_grant; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.role_grant (
    id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    person_id uuid NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    ended_at timestamp with time zone,
    CONSTRAINT role_grant_check CHECK (((project_id IS NULL) OR (org_id IS NOT NULL))),
    CONSTRAINT role_grant_check1 CHECK ((split_part(role, '.'::text, 1) =
CASE
    WHEN (org_id IS NULL) THEN 'platform'::text
    WHEN (project_id IS NULL) THEN 'organization'::text
    ELSE 'project'::text
END))
);

ALTER TABLE ONLY iam.role_grant FORCE ROW LEVEL SECURITY;


ALTER TABLE iam.role_grant OWNER TO ${owner};

--
-- Name: session; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.session (
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);


ALTER TABLE iam.session OWNER TO ${owner};

--
-- Name: sign_in_link; Type: TABLE; Schema: iam; Owner: ${owner}
--

CREATE TABLE iam.sign_in_link (
    code_hash bytea NOT NULL,
    person_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone
);


ALTER TABLE iam.sign_in_link OWNER TO ${owner};

--
-- Name: gpuaas_migration; Type: TABLE; Schema: public; Owner: ${owner}
--

CREATE TABLE public.gpuaas_migration (
    domain text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    name text NOT NULL,
    checksum bytea NOT NULL,
    expands boolean DEFAULT false NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


ALTER TABLE public.gpuaas_migration OWNER TO ${owner};

--
-- Name: delivery; Type: TABLE; Schema: secrets; Owner: ${owner}
--

CREATE TABLE secrets.delivery (
    id uuid NOT NULL,
    secret_id uuid NOT NULL,
    org_id uuid,
    version integer NOT NULL,
    purpose text NOT NULL COLLATE pg_catalog."C",
    recipient_kind text NOT NULL COLLATE pg_catalog."C",
    recipient_id text NOT NULL COLLATE pg_catalog."C",
    correlation_id uuid NOT NULL,
    delivered_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY secrets.delivery FORCE ROW LEVEL SECURITY;


ALTER TABLE secrets.delivery OWNER TO ${owner};

--
-- Name: secret; Type: TABLE; Schema: secrets; Owner: ${owner}
--

CREATE TABLE secrets.secret (
    id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    name text NOT NULL,
    name_key text NOT NULL COLLATE pg_catalog."C",
    material text NOT NULL COLLATE pg_catalog."C",
    purpose text NOT NULL COLLATE pg_catalog."C",
    owner_kind text NOT NULL COLLATE pg_catalog."C",
    owner_id text NOT NULL COLLATE pg_catalog."C",
    current_version integer NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    state_since timestamp with time zone NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT secret_current_version_check CHECK ((current_version >= 1)),
    CONSTRAINT secret_material_check CHECK ((material = ANY (ARRAY['value'::text, 'signing_key'::text]))),
    CONSTRAINT secret_of_project_or_platform CHECK (((org_id IS NULL) = (project_id IS NULL))),
    CONSTRAINT secret_state_check CHECK ((state = ANY (ARRAY['active'::text, 'retired'::text])))
);

ALTER TABLE ONLY secrets.secret FORCE ROW LEVEL SECURITY;


ALTER TABLE secrets.secret OWNER TO ${owner};

--
-- Name: secret_version; Type: TABLE; Schema: secrets; Owner: ${owner}
--

CREATE TABLE secrets.secret_version (
    secret_id uuid NOT NULL,
    version integer NOT NULL,
    org_id uuid,
    sealed bytea,
    wrapped_key bytea,
    key_encryption_id text NOT NULL COLLATE pg_catalog."C",
    public_key bytea,
    created_at timestamp with time zone NOT NULL,
    readable_until timestamp with time zone,
    destroyed_at timestamp with time zone,
    CONSTRAINT secret_version_destroyed_whole CHECK ((((sealed IS NULL) = (destroyed_at IS NOT NULL)) AND ((wrapped_key IS NULL) = (destroyed_at IS NOT NULL)))),
    CONSTRAINT secret_version_version_check CHECK ((version >= 1))
);

ALTER TABLE ONLY secrets.secret_version FORCE ROW LEVEL SECURITY;


ALTER TABLE secrets.secret_version OWNER TO ${owner};

--
-- Name: audit_entry_default; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.audit_entry_default (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    actor_kind text NOT NULL COLLATE pg_catalog."C",
    actor_id text NOT NULL COLLATE pg_catalog."C",
    behalf_kind text COLLATE pg_catalog."C",
    behalf_id text COLLATE pg_catalog."C",
    credential text COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    resource_kind text NOT NULL COLLATE pg_catalog."C",
    resource_id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    before json,
    after json,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    policy_version bigint NOT NULL
);


ALTER TABLE spine.audit_entry_default OWNER TO ${owner};

--
-- Name: consumer; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.consumer (
    name text NOT NULL COLLATE pg_catalog."C",
    "position" bigint DEFAULT 0 NOT NULL,
    position_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    lease_token bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);


ALTER TABLE spine.consumer OWNER TO ${owner};

--
-- Name: flow; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.flow (
    id uuid NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    org_id uuid,
    state text NOT NULL COLLATE pg_catalog."C",
    data json NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    wake_at timestamp with time zone NOT NULL,
    woken boolean DEFAULT false NOT NULL,
    entered_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone,
    waiting_for text,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    lease_token bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    traceparent text COLLATE pg_catalog."C",
    done_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY spine.flow FORCE ROW LEVEL SECURITY;


ALTER TABLE spine.flow OWNER TO ${owner};

--
-- Name: idempotency; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.idempotency (
    actor text NOT NULL COLLATE pg_catalog."C",
    operation text NOT NULL COLLATE pg_catalog."C",
    key_hash bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    body_hash bytea NOT NULL,
    result json NOT NULL
)
PARTITION BY RANGE (at);


ALTER TABLE spine.idempotency OWNER TO ${owner};

--
-- Name: idempotency_default; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.idempotency_default (
    actor text NOT NULL COLLATE pg_catalog."C",
    operation text NOT NULL COLLATE pg_catalog."C",
    key_hash bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    body_hash bytea NOT NULL,
    result json NOT NULL
);


ALTER TABLE spine.idempotency_default OWNER TO ${owner};

--
-- Name: log; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.log (
    "position" bigint NOT NULL,
    sequenced_at timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    traceparent text COLLATE pg_catalog."C"
)
PARTITION BY RANGE (sequenced_at);

ALTER TABLE ONLY spine.log FORCE ROW LEVEL SECURITY;


ALTER TABLE spine.log OWNER TO ${owner};

--
-- Name: log_default; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.log_default (
    "position" bigint NOT NULL,
    sequenced_at timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    traceparent text COLLATE pg_catalog."C"
);


ALTER TABLE spine.log_default OWNER TO ${owner};

--
-- Name: outbox; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.outbox (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    traceparent text COLLATE pg_catalog."C"
)
PARTITION BY RANGE (at);

ALTER TABLE ONLY spine.outbox FORCE ROW LEVEL SECURITY;


ALTER TABLE spine.outbox OWNER TO ${owner};

--
-- Name: outbox_default; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.outbox_default (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text COLLATE pg_catalog."C",
    traceparent text COLLATE pg_catalog."C"
);


ALTER TABLE spine.outbox_default OWNER TO ${owner};

--
-- Name: parked_event; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.parked_event (
    consumer text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    error text NOT NULL,
    attempts integer NOT NULL,
    parked_at timestamp with time zone NOT NULL
);


ALTER TABLE spine.parked_event OWNER TO ${owner};

--
-- Name: sequencer; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.sequencer (
    singleton boolean DEFAULT true NOT NULL,
    epoch integer DEFAULT 1 NOT NULL,
    last_position bigint DEFAULT 0 NOT NULL,
    last_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    done_xid xid8 DEFAULT '0'::xid8 NOT NULL,
    done_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    cluster bigint NOT NULL,
    CONSTRAINT sequencer_singleton_check CHECK (singleton)
);


ALTER TABLE spine.sequencer OWNER TO ${owner};

--
-- Name: setting; Type: TABLE; Schema: spine; Owner: ${owner}
--

CREATE TABLE spine.setting (
    org_id uuid,
    scope_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    value json,
    generation bigint DEFAULT 1 NOT NULL,
    set_by json NOT NULL,
    set_at timestamp with time zone NOT NULL,
    CONSTRAINT setting_check CHECK (((org_id IS NULL) = (scope_id = '00000000-0000-0000-0000-000000000000'::uuid)))
);

ALTER TABLE ONLY spine.setting FORCE ROW LEVEL SECURITY;


ALTER TABLE spine.setting OWNER TO ${owner};

--
-- Name: audit_entry_default; Type: TABLE ATTACH; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.audit_entry ATTACH PARTITION spine.audit_entry_default DEFAULT;


--
-- Name: idempotency_default; Type: TABLE ATTACH; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.idempotency ATTACH PARTITION spine.idempotency_default DEFAULT;


--
-- Name: log_default; Type: TABLE ATTACH; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.log ATTACH PARTITION spine.log_default DEFAULT;


--
-- Name: outbox_default; Type: TABLE ATTACH; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.outbox ATTACH PARTITION spine.outbox_default DEFAULT;


--
-- Data for Name: checkpoint; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: delivery; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: era; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--

INSERT INTO audit.era VALUES (1, 0, 7708621487982499586);


--
-- Data for Name: leaf; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: node; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: pruned; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: signing_key; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--



--
-- Data for Name: tree; Type: TABLE DATA; Schema: audit; Owner: ${owner}
--

INSERT INTO audit.tree VALUES (true, 0, '\x0000000000000000', '0', '00000000-0000-0000-0000-000000000000', NULL);


--
-- Data for Name: api_key; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: invitation; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: organization; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: organization_summary; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: person; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: project; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: revocation; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: role_grant; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: session; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: sign_in_link; Type: TABLE DATA; Schema: iam; Owner: ${owner}
--



--
-- Data for Name: gpuaas_migration; Type: TABLE DATA; Schema: public; Owner: ${owner}
--

INSERT INTO public.gpuaas_migration VALUES ('spine', 1, 'spine', '\x8b6f67d91f48406e0ef5034da007b1ce1884cbd557a3aab2235618b96bcd05a7', true, '2026-11-16 04:28:23.570139+00');
INSERT INTO public.gpuaas_migration VALUES ('iam', 1, 'iam', '\xfa6e73063d6a736c782ec9f0c1bf24bdc0825bc30326477b5447f7f66542941d', true, '2026-11-16 04:28:23.61041+00');
INSERT INTO public.gpuaas_migration VALUES ('iam', 2, 'revocation', '\x5294daa96a2d9f8246eaa61992136f3af8e204ac624f0dc48cb149564b831b73', true, '2026-11-16 04:28:23.638636+00');
INSERT INTO public.gpuaas_migration VALUES ('audit', 1, 'audit', '\x486e05bb9ac97b6dd6ace828a8dfaa5b20eca284a90c44676908b93ecf79464e', true, '2026-11-16 04:28:23.642493+00');
INSERT INTO public.gpuaas_migration VALUES ('secrets', 1, 'secrets', '\x2cbfd9a18a7c9f95fe095e769d2eae31efae557fba9753e786e5374dbb4cc06d', true, '2026-11-16 04:28:23.658142+00');


--
-- Data for Name: delivery; Type: TABLE DATA; Schema: secrets; Owner: ${owner}
--



--
-- Data for Name: secret; Type: TABLE DATA; Schema: secrets; Owner: ${owner}
--



--
-- Data for Name: secret_version; Type: TABLE DATA; Schema: secrets; Owner: ${owner}
--



--
-- Data for Name: audit_entry_default; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: consumer; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: flow; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: idempotency_default; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: log_default; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: outbox_default; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: parked_event; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Data for Name: sequencer; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--

INSERT INTO spine.sequencer VALUES (true, 1, 0, '-infinity', '0', '00000000-0000-0000-0000-000000000000', 7708621487982499586);


--
-- Data for Name: setting; Type: TABLE DATA; Schema: spine; Owner: ${owner}
--



--
-- Name: revocation_id_seq; Type: SEQUENCE SET; Schema: iam; Owner: ${owner}
--

SELECT pg_catalog.setval('iam.revocation_id_seq', 1, false);


--
-- Name: checkpoint checkpoint_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (size);


--
-- Name: delivery delivery_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (name);


--
-- Name: era era_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.era
    ADD CONSTRAINT era_pkey PRIMARY KEY (number);


--
-- Name: leaf leaf_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.leaf
    ADD CONSTRAINT leaf_pkey PRIMARY KEY (index);


--
-- Name: node node_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (level, index);


--
-- Name: pruned pruned_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.pruned
    ADD CONSTRAINT pruned_pkey PRIMARY KEY (lower_at);


--
-- Name: signing_key signing_key_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.signing_key
    ADD CONSTRAINT signing_key_pkey PRIMARY KEY (from_size);


--
-- Name: signing_key signing_key_verifier_key_key; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.signing_key
    ADD CONSTRAINT signing_key_verifier_key_key UNIQUE (verifier_key);


--
-- Name: tree tree_pkey; Type: CONSTRAINT; Schema: audit; Owner: ${owner}
--

ALTER TABLE ONLY audit.tree
    ADD CONSTRAINT tree_pkey PRIMARY KEY (singleton);


--
-- Name: api_key api_key_key_hash_key; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.api_key
    ADD CONSTRAINT api_key_key_hash_key UNIQUE (key_hash);


--
-- Name: api_key api_key_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);


--
-- Name: invitation invitation_code_hash_key; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.invitation
    ADD CONSTRAINT invitation_code_hash_key UNIQUE (code_hash);


--
-- Name: invitation invitation_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.invitation
    ADD CONSTRAINT invitation_pkey PRIMARY KEY (id);


--
-- Name: organization organization_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.organization
    ADD CONSTRAINT organization_pkey PRIMARY KEY (id);


--
-- Name: organization_summary organization_summary_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.organization_summary
    ADD CONSTRAINT organization_summary_pkey PRIMARY KEY (org_id);


--
-- Name: person person_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.person
    ADD CONSTRAINT person_pkey PRIMARY KEY (id);


--
-- Name: project project_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.project
    ADD CONSTRAINT project_pkey PRIMARY KEY (id);


--
-- Name: revocation revocation_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.revocation
    ADD CONSTRAINT revocation_pkey PRIMARY KEY (id);


--
-- Name: role_grant role_grant_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.role_grant
    ADD CONSTRAINT role_grant_pkey PRIMARY KEY (id);


--
-- Name: session session_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);


--
-- Name: session session_token_hash_key; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.session
    ADD CONSTRAINT session_token_hash_key UNIQUE (token_hash);


--
-- Name: sign_in_link sign_in_link_pkey; Type: CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.sign_in_link
    ADD CONSTRAINT sign_in_link_pkey PRIMARY KEY (code_hash);


--
-- Name: gpuaas_migration gpuaas_migration_pkey; Type: CONSTRAINT; Schema: public; Owner: ${owner}
--

ALTER TABLE ONLY public.gpuaas_migration
    ADD CONSTRAINT gpuaas_migration_pkey PRIMARY KEY (domain, version);


--
-- Name: delivery delivery_pkey; Type: CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (id);


--
-- Name: secret secret_pkey; Type: CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.secret
    ADD CONSTRAINT secret_pkey PRIMARY KEY (id);


--
-- Name: secret_version secret_version_pkey; Type: CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.secret_version
    ADD CONSTRAINT secret_version_pkey PRIMARY KEY (secret_id, version);


--
-- Name: audit_entry audit_entry_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (xid, id, at);


--
-- Name: audit_entry_default audit_entry_default_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.audit_entry_default
    ADD CONSTRAINT audit_entry_default_pkey PRIMARY KEY (xid, id, at);


--
-- Name: consumer consumer_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.consumer
    ADD CONSTRAINT consumer_pkey PRIMARY KEY (name);


--
-- Name: flow flow_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.flow
    ADD CONSTRAINT flow_pkey PRIMARY KEY (id);


--
-- Name: idempotency idempotency_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key_hash, operation, actor, at);


--
-- Name: idempotency_default idempotency_default_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.idempotency_default
    ADD CONSTRAINT idempotency_default_pkey PRIMARY KEY (key_hash, operation, actor, at);


--
-- Name: log log_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.log
    ADD CONSTRAINT log_pkey PRIMARY KEY ("position", sequenced_at);


--
-- Name: log_default log_default_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.log_default
    ADD CONSTRAINT log_default_pkey PRIMARY KEY ("position", sequenced_at);


--
-- Name: outbox outbox_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (xid, id, at);


--
-- Name: outbox_default outbox_default_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.outbox_default
    ADD CONSTRAINT outbox_default_pkey PRIMARY KEY (xid, id, at);


--
-- Name: parked_event parked_event_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.parked_event
    ADD CONSTRAINT parked_event_pkey PRIMARY KEY (consumer, "position");


--
-- Name: sequencer sequencer_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.sequencer
    ADD CONSTRAINT sequencer_pkey PRIMARY KEY (singleton);


--
-- Name: setting setting_pkey; Type: CONSTRAINT; Schema: spine; Owner: ${owner}
--

ALTER TABLE ONLY spine.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (scope_id, key);


--
-- Name: leaf_entry_once; Type: INDEX; Schema: audit; Owner: ${owner}
--

CREATE UNIQUE INDEX leaf_entry_once ON audit.leaf USING btree (entry_id);


--
-- Name: api_key_by_person; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE INDEX api_key_by_person ON iam.api_key USING btree (person_id, id);


--
-- Name: invitation_by_org; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE INDEX invitation_by_org ON iam.invitation USING btree (org_id, id);


--
-- Name: organization_name_once; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE UNIQUE INDEX organization_name_once ON iam.organization USING btree (name_key) WHERE (state <> 'archived'::text);


--
-- Name: project_by_org; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE UNIQUE INDEX project_by_org ON iam.project USING btree (org_id, id);


--
-- Name: project_name_once; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE UNIQUE INDEX project_name_once ON iam.project USING btree (org_id, name_key) WHERE (state <> 'archived'::text);


--
-- Name: revocation_by_xid; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE INDEX revocation_by_xid ON iam.revocation USING btree (xid);


--
-- Name: role_grant_by_org; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE INDEX role_grant_by_org ON iam.role_grant USING btree (org_id, id);


--
-- Name: role_grant_once; Type: INDEX; Schema: iam; Owner: ${owner}
--

CREATE UNIQUE INDEX role_grant_once ON iam.role_grant USING btree (person_id, org_id, project_id, role) NULLS NOT DISTINCT WHERE (ended_at IS NULL);


--
-- Name: delivery_by_secret; Type: INDEX; Schema: secrets; Owner: ${owner}
--

CREATE INDEX delivery_by_secret ON secrets.delivery USING btree (secret_id, id);


--
-- Name: secret_by_project; Type: INDEX; Schema: secrets; Owner: ${owner}
--

CREATE INDEX secret_by_project ON secrets.secret USING btree (COALESCE(project_id, '00000000-0000-0000-0000-000000000000'::uuid), id);


--
-- Name: secret_name_once; Type: INDEX; Schema: secrets; Owner: ${owner}
--

CREATE UNIQUE INDEX secret_name_once ON secrets.secret USING btree (COALESCE(project_id, '00000000-0000-0000-0000-000000000000'::uuid), name_key) WHERE (state <> 'retired'::text);


--
-- Name: secret_version_by_key; Type: INDEX; Schema: secrets; Owner: ${owner}
--

CREATE INDEX secret_version_by_key ON secrets.secret_version USING btree (key_encryption_id) WHERE (wrapped_key IS NOT NULL);


--
-- Name: secret_version_ending; Type: INDEX; Schema: secrets; Owner: ${owner}
--

CREATE INDEX secret_version_ending ON secrets.secret_version USING btree (readable_until) WHERE (wrapped_key IS NOT NULL);


--
-- Name: audit_entry_by_org; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX audit_entry_by_org ON ONLY spine.audit_entry USING btree (org_id, xid, id, at);


--
-- Name: audit_entry_by_time; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX audit_entry_by_time ON ONLY spine.audit_entry USING btree (at, id);


--
-- Name: audit_entry_default_at_id_idx; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX audit_entry_default_at_id_idx ON spine.audit_entry_default USING btree (at, id);


--
-- Name: audit_entry_default_org_id_xid_id_at_idx; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX audit_entry_default_org_id_xid_id_at_idx ON spine.audit_entry_default USING btree (org_id, xid, id, at);


--
-- Name: flow_done; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX flow_done ON spine.flow USING btree (done_at) WHERE (done_at IS NOT NULL);


--
-- Name: flow_due; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX flow_due ON spine.flow USING btree (kind, wake_at) WHERE (done_at IS NULL);


--
-- Name: flow_one_live_per_key; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE UNIQUE INDEX flow_one_live_per_key ON spine.flow USING btree (kind, key) WHERE (done_at IS NULL);


--
-- Name: log_by_org; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX log_by_org ON ONLY spine.log USING btree (org_id, "position");


--
-- Name: log_default_org_id_position_idx; Type: INDEX; Schema: spine; Owner: ${owner}
--

CREATE INDEX log_default_org_id_position_idx ON spine.log_default USING btree (org_id, "position");


--
-- Name: audit_entry_default_at_id_idx; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.audit_entry_by_time ATTACH PARTITION spine.audit_entry_default_at_id_idx;


--
-- Name: audit_entry_default_org_id_xid_id_at_idx; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.audit_entry_by_org ATTACH PARTITION spine.audit_entry_default_org_id_xid_id_at_idx;


--
-- Name: audit_entry_default_pkey; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.audit_entry_pkey ATTACH PARTITION spine.audit_entry_default_pkey;


--
-- Name: idempotency_default_pkey; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.idempotency_pkey ATTACH PARTITION spine.idempotency_default_pkey;


--
-- Name: log_default_org_id_position_idx; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.log_by_org ATTACH PARTITION spine.log_default_org_id_position_idx;


--
-- Name: log_default_pkey; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.log_pkey ATTACH PARTITION spine.log_default_pkey;


--
-- Name: outbox_default_pkey; Type: INDEX ATTACH; Schema: spine; Owner: ${owner}
--

ALTER INDEX spine.outbox_pkey ATTACH PARTITION spine.outbox_default_pkey;


--
-- Name: checkpoint append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: era append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.era FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: leaf append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.leaf FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: node append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.node FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: pruned append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.pruned FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: signing_key append_only; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.signing_key FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: tree only_grows; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER only_grows BEFORE DELETE OR UPDATE ON audit.tree FOR EACH ROW EXECUTE FUNCTION audit.refuse_shrink();


--
-- Name: tree only_grows_truncate; Type: TRIGGER; Schema: audit; Owner: ${owner}
--

CREATE TRIGGER only_grows_truncate BEFORE TRUNCATE ON audit.tree FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: delivery append_only; Type: TRIGGER; Schema: secrets; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON secrets.delivery FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: audit_entry append_only; Type: TRIGGER; Schema: spine; Owner: ${owner}
--

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON spine.audit_entry FOR EACH ROW EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: audit_entry append_only_truncate; Type: TRIGGER; Schema: spine; Owner: ${owner}
--

CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.audit_entry FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: audit_entry_default append_only_truncate; Type: TRIGGER; Schema: spine; Owner: ${owner}
--

CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.audit_entry_default FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();


--
-- Name: api_key api_key_org_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.api_key
    ADD CONSTRAINT api_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id);


--
-- Name: api_key api_key_org_id_project_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.api_key
    ADD CONSTRAINT api_key_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id);


--
-- Name: api_key api_key_person_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.api_key
    ADD CONSTRAINT api_key_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id);


--
-- Name: invitation invitation_accepted_by_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.invitation
    ADD CONSTRAINT invitation_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES iam.person(id);


--
-- Name: invitation invitation_org_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.invitation
    ADD CONSTRAINT invitation_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id);


--
-- Name: invitation invitation_org_id_project_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.invitation
    ADD CONSTRAINT invitation_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id);


--
-- Name: project project_org_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.project
    ADD CONSTRAINT project_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id);


--
-- Name: role_grant role_grant_org_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.role_grant
    ADD CONSTRAINT role_grant_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id);


--
-- Name: role_grant role_grant_org_id_project_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.role_grant
    ADD CONSTRAINT role_grant_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id);


--
-- Name: role_grant role_grant_person_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.role_grant
    ADD CONSTRAINT role_grant_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id);


--
-- Name: session session_person_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.session
    ADD CONSTRAINT session_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id);


--
-- Name: sign_in_link sign_in_link_person_id_fkey; Type: FK CONSTRAINT; Schema: iam; Owner: ${owner}
--

ALTER TABLE ONLY iam.sign_in_link
    ADD CONSTRAINT sign_in_link_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id);


--
-- Name: delivery delivery_secret_id_fkey; Type: FK CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.delivery
    ADD CONSTRAINT delivery_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets.secret(id);


--
-- Name: secret secret_org_id_fkey; Type: FK CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.secret
    ADD CONSTRAINT secret_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id);


--
-- Name: secret secret_project_id_fkey; Type: FK CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.secret
    ADD CONSTRAINT secret_project_id_fkey FOREIGN KEY (project_id) REFERENCES iam.project(id);


--
-- Name: secret_version secret_version_secret_id_fkey; Type: FK CONSTRAINT; Schema: secrets; Owner: ${owner}
--

ALTER TABLE ONLY secrets.secret_version
    ADD CONSTRAINT secret_version_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets.secret(id);


--
-- Name: api_key; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.api_key ENABLE ROW LEVEL SECURITY;

--
-- Name: invitation; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.invitation ENABLE ROW LEVEL SECURITY;

--
-- Name: person members; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY members ON iam.person FOR SELECT TO ${app} USING ((EXISTS ( SELECT
   FROM iam.role_grant g
  WHERE ((g.person_id = person.id) AND (g.org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif"))))));


--
-- Name: organization; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.organization ENABLE ROW LEVEL SECURITY;

--
-- Name: organization_summary; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.organization_summary ENABLE ROW LEVEL SECURITY;

--
-- Name: person; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.person ENABLE ROW LEVEL SECURITY;

--
-- Name: person platform; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY platform ON iam.person TO ${app} USING (( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text)));


--
-- Name: project; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.project ENABLE ROW LEVEL SECURITY;

--
-- Name: role_grant; Type: ROW SECURITY; Schema: iam; Owner: ${owner}
--

ALTER TABLE iam.role_grant ENABLE ROW LEVEL SECURITY;

--
-- Name: api_key tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.api_key TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: invitation tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.invitation TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: organization tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.organization TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: organization_summary tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.organization_summary TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: project tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.project TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: role_grant tenant; Type: POLICY; Schema: iam; Owner: ${owner}
--

CREATE POLICY tenant ON iam.role_grant TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: delivery; Type: ROW SECURITY; Schema: secrets; Owner: ${owner}
--

ALTER TABLE secrets.delivery ENABLE ROW LEVEL SECURITY;

--
-- Name: secret; Type: ROW SECURITY; Schema: secrets; Owner: ${owner}
--

ALTER TABLE secrets.secret ENABLE ROW LEVEL SECURITY;

--
-- Name: secret_version; Type: ROW SECURITY; Schema: secrets; Owner: ${owner}
--

ALTER TABLE secrets.secret_version ENABLE ROW LEVEL SECURITY;

--
-- Name: delivery tenant; Type: POLICY; Schema: secrets; Owner: ${owner}
--

CREATE POLICY tenant ON secrets.delivery TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: secret tenant; Type: POLICY; Schema: secrets; Owner: ${owner}
--

CREATE POLICY tenant ON secrets.secret TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: secret_version tenant; Type: POLICY; Schema: secrets; Owner: ${owner}
--

CREATE POLICY tenant ON secrets.secret_version TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: audit_entry; Type: ROW SECURITY; Schema: spine; Owner: ${owner}
--

ALTER TABLE spine.audit_entry ENABLE ROW LEVEL SECURITY;

--
-- Name: flow; Type: ROW SECURITY; Schema: spine; Owner: ${owner}
--

ALTER TABLE spine.flow ENABLE ROW LEVEL SECURITY;

--
-- Name: log; Type: ROW SECURITY; Schema: spine; Owner: ${owner}
--

ALTER TABLE spine.log ENABLE ROW LEVEL SECURITY;

--
-- Name: outbox; Type: ROW SECURITY; Schema: spine; Owner: ${owner}
--

ALTER TABLE spine.outbox ENABLE ROW LEVEL SECURITY;

--
-- Name: log relay; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY relay ON spine.log TO ${relay} USING (true);


--
-- Name: outbox relay; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY relay ON spine.outbox TO ${relay} USING (true);


--
-- Name: setting relay; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY relay ON spine.setting FOR SELECT TO ${relay} USING (true);


--
-- Name: audit_entry sealer; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY sealer ON spine.audit_entry FOR SELECT TO ${sealer} USING (true);


--
-- Name: setting sealer; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY sealer ON spine.setting FOR SELECT TO ${sealer} USING (true);


--
-- Name: setting; Type: ROW SECURITY; Schema: spine; Owner: ${owner}
--

ALTER TABLE spine.setting ENABLE ROW LEVEL SECURITY;

--
-- Name: audit_entry tenant; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY tenant ON spine.audit_entry TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: flow tenant; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY tenant ON spine.flow TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: log tenant; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY tenant ON spine.log FOR SELECT TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: outbox tenant; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY tenant ON spine.outbox TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: setting tenant; Type: POLICY; Schema: spine; Owner: ${owner}
--

CREATE POLICY tenant ON spine.setting TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));


--
-- Name: SCHEMA audit; Type: ACL; Schema: -; Owner: ${owner}
--

GRANT USAGE ON SCHEMA audit TO ${app};
GRANT USAGE ON SCHEMA audit TO ${reader};
GRANT USAGE ON SCHEMA audit TO ${sealer};


--
-- Name: SCHEMA iam; Type: ACL; Schema: -; Owner: ${owner}
--

GRANT USAGE ON SCHEMA iam TO ${app};
GRANT USAGE ON SCHEMA iam TO ${reader};


--
-- Name: SCHEMA secrets; Type: ACL; Schema: -; Owner: ${owner}
--

GRANT USAGE ON SCHEMA secrets TO ${app};
GRANT USAGE ON SCHEMA secrets TO ${reader};


--
-- Name: SCHEMA spine; Type: ACL; Schema: -; Owner: ${owner}
--

GRANT USAGE ON SCHEMA spine TO ${app};
GRANT USAGE ON SCHEMA spine TO ${reader};
GRANT USAGE ON SCHEMA spine TO ${sealer};
GRANT USAGE ON SCHEMA spine TO ${relay};


--
-- Name: FUNCTION partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone); Type: ACL; Schema: audit; Owner: ${owner}
--

REVOKE ALL ON FUNCTION audit.partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION audit.partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone) TO ${sealer};


--
-- Name: FUNCTION partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text); Type: ACL; Schema: spine; Owner: ${owner}
--

REVOKE ALL ON FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text) FROM PUBLIC;
GRANT ALL ON FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text) TO ${app};


--
-- Name: FUNCTION partition_prune(parent text, column_name text, before_at timestamp with time zone); Type: ACL; Schema: spine; Owner: ${owner}
--

REVOKE ALL ON FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamp with time zone) TO ${app};


--
-- Name: PROCEDURE wall(IN walled regclass, IN command text, VARIADIC logins name[]); Type: ACL; Schema: spine; Owner: ${owner}
--

REVOKE ALL ON PROCEDURE spine.wall(IN walled regclass, IN command text, VARIADIC logins name[]) FROM PUBLIC;


--
-- Name: TABLE checkpoint; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.checkpoint TO ${app};
GRANT SELECT ON TABLE audit.checkpoint TO ${reader};
GRANT SELECT,INSERT ON TABLE audit.checkpoint TO ${sealer};


--
-- Name: TABLE delivery; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE audit.delivery TO ${sealer};


--
-- Name: TABLE audit_entry; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT ON TABLE spine.audit_entry TO ${app};
GRANT SELECT ON TABLE spine.audit_entry TO ${reader};
GRANT SELECT ON TABLE spine.audit_entry TO ${sealer};


--
-- Name: COLUMN audit_entry.id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.at; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(at) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.org_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(org_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.project_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(project_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.actor_kind; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(actor_kind) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.actor_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(actor_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.behalf_kind; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(behalf_kind) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.behalf_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(behalf_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.credential; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(credential) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.action; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(action) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.resource_kind; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(resource_kind) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.resource_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(resource_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.generation; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(generation) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.before; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(before) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.after; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(after) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.correlation_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(correlation_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.causation_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(causation_id) ON TABLE spine.audit_entry TO ${app};


--
-- Name: COLUMN audit_entry.policy_version; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(policy_version) ON TABLE spine.audit_entry TO ${app};


--
-- Name: TABLE entry_partition; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.entry_partition TO ${sealer};


--
-- Name: TABLE era; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.era TO ${app};
GRANT SELECT ON TABLE audit.era TO ${reader};
GRANT SELECT,INSERT ON TABLE audit.era TO ${sealer};


--
-- Name: TABLE leaf; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.leaf TO ${app};
GRANT SELECT ON TABLE audit.leaf TO ${reader};
GRANT SELECT,INSERT ON TABLE audit.leaf TO ${sealer};


--
-- Name: TABLE node; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.node TO ${app};
GRANT SELECT ON TABLE audit.node TO ${reader};
GRANT SELECT,INSERT ON TABLE audit.node TO ${sealer};


--
-- Name: TABLE pruned; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.pruned TO ${app};
GRANT SELECT ON TABLE audit.pruned TO ${reader};
GRANT SELECT ON TABLE audit.pruned TO ${sealer};


--
-- Name: TABLE signing_key; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.signing_key TO ${app};
GRANT SELECT ON TABLE audit.signing_key TO ${reader};
GRANT SELECT,INSERT ON TABLE audit.signing_key TO ${sealer};


--
-- Name: TABLE tree; Type: ACL; Schema: audit; Owner: ${owner}
--

GRANT SELECT ON TABLE audit.tree TO ${app};
GRANT SELECT ON TABLE audit.tree TO ${reader};
GRANT SELECT,UPDATE ON TABLE audit.tree TO ${sealer};


--
-- Name: TABLE api_key; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.api_key TO ${app};


--
-- Name: TABLE invitation; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.invitation TO ${app};


--
-- Name: TABLE organization; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.organization TO ${app};
GRANT SELECT ON TABLE iam.organization TO ${reader};


--
-- Name: TABLE organization_summary; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE iam.organization_summary TO ${app};
GRANT SELECT ON TABLE iam.organization_summary TO ${reader};


--
-- Name: TABLE person; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.person TO ${app};


--
-- Name: TABLE project; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.project TO ${app};
GRANT SELECT ON TABLE iam.project TO ${reader};


--
-- Name: TABLE revocation; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,DELETE ON TABLE iam.revocation TO ${app};


--
-- Name: TABLE role_grant; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.role_grant TO ${app};


--
-- Name: TABLE session; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.session TO ${app};


--
-- Name: TABLE sign_in_link; Type: ACL; Schema: iam; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE iam.sign_in_link TO ${app};


--
-- Name: TABLE gpuaas_migration; Type: ACL; Schema: public; Owner: ${owner}
--

GRANT SELECT ON TABLE public.gpuaas_migration TO ${app};
GRANT SELECT ON TABLE public.gpuaas_migration TO ${reader};
GRANT SELECT ON TABLE public.gpuaas_migration TO ${sealer};
GRANT SELECT ON TABLE public.gpuaas_migration TO ${relay};
GRANT SELECT ON TABLE public.gpuaas_migration TO ${backup};


--
-- Name: TABLE delivery; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT SELECT,INSERT ON TABLE secrets.delivery TO ${app};
GRANT SELECT ON TABLE secrets.delivery TO ${reader};


--
-- Name: TABLE secret; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT SELECT,INSERT ON TABLE secrets.secret TO ${app};
GRANT SELECT ON TABLE secrets.secret TO ${reader};


--
-- Name: COLUMN secret.current_version; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(current_version) ON TABLE secrets.secret TO ${app};


--
-- Name: COLUMN secret.state; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(state) ON TABLE secrets.secret TO ${app};


--
-- Name: COLUMN secret.state_since; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(state_since) ON TABLE secrets.secret TO ${app};


--
-- Name: COLUMN secret.generation; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(generation) ON TABLE secrets.secret TO ${app};


--
-- Name: COLUMN secret.updated_at; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(updated_at) ON TABLE secrets.secret TO ${app};


--
-- Name: TABLE secret_version; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT SELECT,INSERT ON TABLE secrets.secret_version TO ${app};


--
-- Name: COLUMN secret_version.sealed; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(sealed) ON TABLE secrets.secret_version TO ${app};


--
-- Name: COLUMN secret_version.wrapped_key; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(wrapped_key) ON TABLE secrets.secret_version TO ${app};


--
-- Name: COLUMN secret_version.key_encryption_id; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(key_encryption_id) ON TABLE secrets.secret_version TO ${app};


--
-- Name: COLUMN secret_version.readable_until; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(readable_until) ON TABLE secrets.secret_version TO ${app};


--
-- Name: COLUMN secret_version.destroyed_at; Type: ACL; Schema: secrets; Owner: ${owner}
--

GRANT UPDATE(destroyed_at) ON TABLE secrets.secret_version TO ${app};


--
-- Name: TABLE consumer; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE spine.consumer TO ${app};
GRANT SELECT,INSERT,UPDATE ON TABLE spine.consumer TO ${relay};


--
-- Name: TABLE flow; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE spine.flow TO ${app};


--
-- Name: TABLE idempotency; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,INSERT ON TABLE spine.idempotency TO ${app};


--
-- Name: TABLE log; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT ON TABLE spine.log TO ${app};
GRANT SELECT ON TABLE spine.log TO ${reader};
GRANT SELECT,INSERT ON TABLE spine.log TO ${relay};


--
-- Name: TABLE outbox; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,DELETE ON TABLE spine.outbox TO ${relay};


--
-- Name: COLUMN outbox.xid; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT(xid) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT(id),INSERT(id) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.at; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT(at),INSERT(at) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.org_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(org_id) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.project_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(project_id) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.type; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(type) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.subject; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(subject) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.generation; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(generation) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.data; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(data) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.correlation_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(correlation_id) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.causation_id; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(causation_id) ON TABLE spine.outbox TO ${app};


--
-- Name: COLUMN outbox.traceparent; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT INSERT(traceparent) ON TABLE spine.outbox TO ${app};


--
-- Name: TABLE parked_event; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,INSERT,DELETE ON TABLE spine.parked_event TO ${app};
GRANT SELECT,INSERT,DELETE ON TABLE spine.parked_event TO ${relay};


--
-- Name: TABLE sequencer; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT ON TABLE spine.sequencer TO ${app};
GRANT SELECT ON TABLE spine.sequencer TO ${reader};
GRANT SELECT ON TABLE spine.sequencer TO ${sealer};
GRANT SELECT,UPDATE ON TABLE spine.sequencer TO ${relay};


--
-- Name: TABLE setting; Type: ACL; Schema: spine; Owner: ${owner}
--

GRANT SELECT,INSERT,UPDATE ON TABLE spine.setting TO ${app};
GRANT SELECT ON TABLE spine.setting TO ${reader};
GRANT SELECT ON TABLE spine.setting TO ${sealer};
GRANT SELECT ON TABLE spine.setting TO ${relay};


--
-- PostgreSQL database dump complete
--


