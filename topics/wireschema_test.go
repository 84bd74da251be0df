package topics_test

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A schema is made of the fields of a record type and their tags, their comments, and what the codec of the topic says about the
// golden records when they are changed:
//
//   - A member is required if the codec rejects each of them without it, or if wireTopics says that a processor does.
//   - It has an enum if the codec rejects another text there. Its values are the constants of the package that the codec accepts.

// wireRecord is a topic of the catalog and its values.
type wireRecord struct {
	wireTopic
	spec     topics.Spec
	typ      reflect.Type // of the values
	codec    reflect.Value
	examples []topics.Raw
	source   *source
}

// agent is the placeholder for the name of the agent.
const agent = "AGENT"

// wireRecords returns the topics of the catalog that have a record type, in the order of the catalog's fields.
func wireRecords(t testing.TB) (all []*wireRecord) {
	t.Helper()
	c, err := topics.For(agent)
	require.NoError(t, err)
	whole, err := topics.For(agent, slices.Collect(maps.Values(withCapabilities))...)
	require.NoError(t, err)
	programs := whole.Programs()
	parsed := parse(t)
	golden := map[string][]topics.Raw{} // by the type of the record
	catalog := reflect.ValueOf(c)
	for i := range catalog.NumField() {
		if !catalog.Type().Field(i).IsExported() {
			continue
		}
		topic, ok := catalog.Field(i).Interface().(interface{ Spec() topics.Spec })
		if !ok {
			continue
		}
		r := &wireRecord{spec: topic.Spec(), source: parsed}
		r.name = strings.TrimPrefix(r.spec.Name, agent+"-")
		at := slices.IndexFunc(wireTopics, func(w wireTopic) bool { return w.name == r.name })
		require.GreaterOrEqual(t, at, 0, "wireTopics lacks %s", r.name)
		r.wireTopic = wireTopics[at]
		r.writers, r.readers = slices.Clone(r.writers), slices.Clone(r.readers)
		for _, p := range programs {
			if slices.Contains(p.Writes, r.spec.Name) {
				r.writers = append(r.writers, p.Name)
			}
			if slices.Contains(p.Reads, r.spec.Name) {
				r.readers = append(r.readers, p.Name)
			}
		}
		r.codec = catalog.Field(i).MethodByName("Codec").Call(nil)[0]
		r.typ = r.codec.MethodByName("Marshal").Type().In(0)
		if file, err := os.ReadFile("testdata/golden/" + r.name + ".jsonl"); err == nil {
			for line := range bytes.Lines(file) {
				r.examples = append(r.examples, bytes.TrimSpace(line))
			}
			golden[r.spec.Record] = append(golden[r.spec.Record], r.examples...)
		}
		all = append(all, r)
	}
	require.Len(t, wireTopics, len(all))
	for _, r := range all {
		if r.examples == nil {
			r.examples = golden[r.spec.Record]
		}
		require.True(t, r.examples != nil || !r.isJSON(), r.name)
	}
	return all
}

// isJSON reports whether the values are JSON objects that a schema describes.
func (r *wireRecord) isJSON() bool { return r.typ.Kind() == reflect.Struct }

func (r *wireRecord) accepts(record topics.Raw) bool { return r.decode(record) == nil }

func (r *wireRecord) decode(record topics.Raw) error {
	decoded := r.codec.MethodByName("Unmarshal").Call([]reflect.Value{reflect.ValueOf([]byte(record))})[0]
	err, _ := decoded.FieldByName("Err").Interface().(error)
	return err
}

// changed returns the golden records with another member at a path, those of them that have its object.
func (r *wireRecord) changed(t testing.TB, path []string, replacement topics.Raw) (all []topics.Raw) {
	if path == nil {
		return nil
	}
	for _, e := range r.examples {
		if record, found := edit(t, e, path, replacement); found > 0 {
			all = append(all, record)
		}
	}
	return all
}

// schema returns the JSON Schema of the topic's values.
func (r *wireRecord) schema(t testing.TB) node {
	n := node{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", r.spec.Record},
		{"description", r.source.about(r.typ)},
	}
	return append(n, r.object(t, r.typ, nil)...)
}

func (r *wireRecord) object(t testing.TB, typ reflect.Type, path []string) node {
	names := memberNames(typ)
	properties, required := node{}, []string{}
	for f := range fields(typ) {
		name := names[f.Name]
		if name == "" {
			continue
		}
		at := append(slices.Clone(path), name)
		needed := r.required(t, at)
		if needed {
			required = append(required, name)
		}
		comment := r.source.fields[typ.Name()][f.Name]
		if f.Tag.Get("as") == "time" {
			comment, _, _ = strings.Cut(inMilliseconds.ReplaceAllString(comment, ""), " On the wire")
		}
		description := r.source.wire(comment, names)
		description = cmp.Or(description, r.source.about(elementOf(f.Type)), glossary[name])
		if description == "" {
			t.Errorf("%s.%s has no comment, and the glossary lacks %s", typ, f.Name, name)
		}
		properties = properties.with(name, r.value(t, f.Type, f.Tag, at, needed, description))
	}
	properties = append(properties, alsoWritten[typ.Name()]...)
	n := node{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		n = n.with("required", required)
	} else if path == nil && !r.accepts(topics.Raw("{}")) {
		n = n.with("minProperties", 1)
	}
	return n
}

// inMilliseconds says how Go has a time that is a text in the record.
var inMilliseconds = regexp.MustCompile(`,? in milliseconds since the epoch`)

// elementOf is the type that a pointer or a list is of.
func elementOf(typ reflect.Type) reflect.Type {
	if typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice && typ != reflect.TypeFor[topics.Raw]() {
		return typ.Elem()
	}
	return typ
}

// memberNames are the names of the members of a struct by its fields.
func memberNames(typ reflect.Type) map[string]string {
	names := map[string]string{}
	for f := range fields(typ) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names[f.Name] = name
		}
	}
	return names
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

// required reports whether the codec, or a processor, rejects a record without a member.
func (r *wireRecord) required(t testing.TB, path []string) bool {
	if len(path) == 1 && slices.Contains(r.needs, path[0]) {
		return true
	}
	return r.rejects(t, path, nil)
}

// rejects reports whether the codec rejects each golden record with another value at a path.
func (r *wireRecord) rejects(t testing.TB, path []string, value topics.Raw) bool {
	records := r.changed(t, path, value)
	return len(records) > 0 && !slices.ContainsFunc(records, r.accepts)
}

// value describes a value. Null is the same as its absence.
func (r *wireRecord) value(t testing.TB, typ reflect.Type, tag reflect.StructTag, path []string, needed bool, description string) node {
	if typ.Kind() == reflect.Pointer {
		typ = elementOf(typ)
	}
	n, as := node{}, tag.Get("as")
	kind := func(name string, more ...member) {
		if needed {
			n = n.with("type", name)
		} else {
			n = n.with("type", []string{name, "null"})
		}
		n = append(n, more...)
	}
	switch {
	case typ == reflect.TypeFor[topics.Raw]() && as == "":
	case as == "object":
		kind("object")
	case as == "list":
		kind("array", member{"items", node{{"type", []string{"object", "null"}}}})
	case as == "time":
		kind("string", member{"format", "date-time"})
	case typ.Kind() == reflect.String:
		kind("string")
		if values := r.enum(t, typ, path); values != nil {
			list := make([]any, 0, len(values)+1)
			for _, v := range values {
				list = append(list, v)
			}
			if !needed {
				list = append(list, nil)
			}
			n = n.with("enum", list)
			break
		}
		if r.rejects(t, path, topics.Raw(`""`)) {
			n = n.with("minLength", 1)
		}
		if known := r.source.values(func(c constant) bool { return c.typ == typ.Name() }); known != nil {
			description += " Known values: " + quoted(known) + "."
		}
	case typ.Kind() == reflect.Bool:
		kind("boolean")
	case typ.Kind() == reflect.Float64:
		kind("number")
	case typ.Kind() == reflect.Int64:
		kind("integer")
		switch {
		case r.rejects(t, path, topics.Raw("0")):
			n = n.with("minimum", 1)
		case r.rejects(t, path, topics.Raw("-1")):
			n = n.with("minimum", 0)
		case as == "int32":
			n = n.with("minimum", -1<<31)
		}
		if as == "int32" {
			n = n.with("maximum", 1<<31-1)
		}
	case typ.Kind() == reflect.Struct:
		inner := r.object(t, typ, path)
		kind("object", inner[1:]...)
	case typ.Kind() == reflect.Slice:
		if typ.Elem().Kind() != reflect.Struct {
			path = nil // a path leads to members of objects
		}
		kind("array", member{"items", r.value(t, typ.Elem(), "", path, false, "")})
	default:
		t.Errorf("%v: no schema for %s", path, typ)
	}
	if description != "" {
		n = append(node{{"description", strings.TrimSpace(description)}}, n...)
	}
	return n
}

// enum returns the texts that a member may have, nil if it may have any.
func (r *wireRecord) enum(t testing.TB, typ reflect.Type, path []string) (values []string) {
	with := func(value string) bool { return !r.rejects(t, path, topics.Raw(strconv.Quote(value))) }
	if with("another text") {
		return nil
	}
	for _, v := range r.source.values(func(c constant) bool { return typ.Name() == "string" || c.typ == typ.Name() }) {
		if with(v) {
			values = append(values, v)
		}
	}
	return values
}

// schemas returns the schemas of all topics that have one, by the topic's name.
func schemas(t testing.TB) map[string]node {
	all := map[string]node{}
	for _, r := range wireRecords(t) {
		if r.isJSON() {
			all[r.name] = r.schema(t)
		}
	}
	return all
}
