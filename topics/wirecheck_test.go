package topics_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/testing/wirecheck"
	"github.com/turntable-streams/turntable/topics"
)

func TestSchemasAcceptTheGoldenRecords(t *testing.T) {
	for _, r := range wireRecords(t) {
		for _, record := range r.examples {
			require.NoError(t, wirecheck.Record(r.spec.Name, record))
		}
	}
	require.Error(t, wirecheck.Record("a-session-control", []byte(`{"action":"stop"}`)))
	require.Error(t, wirecheck.Record("a-memoir-context-session-end", []byte(`{"messages":5,"memoir_context":5}`)))
	require.NoError(t, wirecheck.Record("a-session-control", nil))
	require.NoError(t, wirecheck.Record("a-streams-table", []byte("x")))
}

// What the codec of a topic writes, and can read, is valid, and its members are those of the schema: all that are always there, and
// no others.
func TestSchemasAcceptWhatTheCodecsWrite(t *testing.T) {
	for _, r := range wireRecords(t) {
		if !r.isJSON() {
			continue
		}
		schema := r.schema(t)
		t.Run(r.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				v := reflect.New(r.typ).Elem()
				topics.Fill(rt, v)
				withoutOrigins(v)
				written := r.codec.MethodByName("Marshal").Call([]reflect.Value{v})
				require.True(rt, written[1].IsNil())
				record := topics.Raw(written[0].Bytes())
				requireMembers(t, rt, r.typ, schema, record)
				if r.accepts(record) && !slices.ContainsFunc(r.needs, func(name string) bool { return isNull(record, name) }) {
					require.NoError(rt, wirecheck.Record(r.spec.Name, record))
				}
			})
		})
	}
}

// withoutOrigins removes the origins and the depths of the calls in a response: the codec does not read them there.
func withoutOrigins(v reflect.Value) {
	response, ok := v.Addr().Interface().(*topics.ThinkResponse)
	if snapshot, is := v.Addr().Interface().(*topics.MemoirSnapshot); is {
		response, ok = snapshot.ThinkResponse, snapshot.ThinkResponse != nil
	}
	if ok {
		for i := range response.ToolUses {
			response.ToolUses[i].Origin, response.ToolUses[i].Depth = nil, 0
		}
	}
}

func isNull(record topics.Raw, name string) bool {
	value, _ := topics.Lookup(record, name)
	return value == nil
}

// requireMembers requires that the members of an object are in its schema, and that those are there that the tags of a type do not
// leave out. Values of other types than the schema's are not objects of the record, but of who wrote it.
func requireMembers(t *testing.T, rt *rapid.T, typ reflect.Type, schema node, record topics.Raw) {
	if typ == reflect.TypeFor[topics.Route]() || typ == reflect.TypeFor[topics.CrewEvent]() {
		return // they have members of others
	}
	properties := schema.get("properties").(node)
	var names []string
	for _, m := range membersOf(t, record) {
		value, known := properties.get(m.name).(node)
		require.True(rt, known, "%s: %s writes it, and the schema lacks it", m.name, typ)
		names = append(names, m.name)
		i := slices.IndexFunc(slices.Collect(fields(typ)), func(f reflect.StructField) bool { return memberNames(typ)[f.Name] == m.name })
		if i < 0 {
			continue
		}
		inner, raw := elementOf(typ.Field(i).Type), m.value.(topics.Raw)
		if inner.Kind() != reflect.Struct || string(raw) == "null" {
			continue
		}
		objects := []topics.Raw{raw}
		if raw[0] == '[' {
			value = value.get("items").(node)
			elements, err := topics.Elements(raw)
			require.NoError(rt, err)
			objects = elements
		}
		for _, object := range objects {
			requireMembers(t, rt, inner, value, object)
		}
	}
	for f := range fields(typ) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" && option == "" && f.Tag.Get("with") == "" && f.Tag.Get("without") == "" {
			require.Contains(rt, names, name, "%s does not write it", typ)
		}
	}
}

// rules are conditions between members, which the schemas do not express.
var rules = []string{
	"args_sha256: not the digest of args", "fields event and result", "field peer_id and inbound_id", "field number: not a positive",
	"field tool: missing", "field kind: missing", "field cause: missing", "field seq: missing", "field step: missing",
	"field gate_id: missing", "field task_id: missing",
}

// A golden record in which a member is replaced is not valid if the codec rejects it.
func TestSchemasRejectWhatTheCodecsReject(t *testing.T) {
	for _, r := range wireRecords(t) {
		if !r.isJSON() {
			continue
		}
		for _, path := range paths(r.schema(t), nil) {
			for _, value := range []string{
				"", "null", `"x"`, `""`, "5", "-1", "1.5", "3000000000", "true", "{}", "[]", "[{}]", "[null]", "[5]", `"2026-06-20T08:14:50Z"`,
			} {
				replacement := topics.Raw(value)
				if value == "" {
					replacement = nil
				}
				for _, record := range r.changed(t, path, replacement) {
					if wirecheck.Record(r.spec.Name, record) != nil {
						continue
					}
					if err := r.decode(record); err != nil && !slices.ContainsFunc(rules, func(rule string) bool { return strings.Contains(err.Error(), rule) }) {
						t.Errorf("%s: %v: %s is valid: %v", r.name, path, value, err)
					}
				}
			}
		}
	}
}

// paths are the paths of all members of a schema.
func paths(schema node, prefix []string) (all [][]string) {
	properties, _ := schema.get("properties").(node)
	for _, m := range properties {
		at := append(slices.Clone(prefix), m.name)
		all = append(all, at)
		inner := m.value.(node)
		if items, ok := inner.get("items").(node); ok {
			inner = items
		}
		all = append(all, paths(inner, at)...)
	}
	return all
}
