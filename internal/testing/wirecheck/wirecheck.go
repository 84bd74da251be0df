// Package wirecheck validates the records that tests write by the JSON Schemas of package topics. Tests with a
// processortest.Driver import it for its effect, and a record of a graph that its schema rejects then fails the test:
//
//	import _ "github.com/turntable-streams/turntable/internal/testing/wirecheck"
package wirecheck

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/topics"
)

func init() { runtimeapi.Written = Record }

// Record returns an error if the value of a record is not valid by the schema of its topic. It accepts tombstones and records of
// topics that have no schema.
func Record(topic string, value []byte) error {
	all, err := compiled()
	if err != nil || value == nil {
		return err
	}
	// The longest name counts: memoir-context-session-end is not session-end.
	name := ""
	for n := range all {
		if strings.HasSuffix(topic, "-"+n) && len(n) > len(name) {
			name = n
		}
	}
	if name == "" {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("wirecheck: record of %s: %w", topic, err)
	}
	if err := all[name].Validate(v); err != nil {
		return fmt.Errorf("wirecheck: record of %s: %w\n%s", topic, err, value)
	}
	return nil
}

var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	all := map[string]*jsonschema.Schema{}
	for name, text := range topics.Schemas() {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("wirecheck: schema of %s: %w", name, err)
		}
		if err := compiler.AddResource(name+".json", document); err != nil {
			return nil, fmt.Errorf("wirecheck: schema of %s: %w", name, err)
		}
		if all[name], err = compiler.Compile(name + ".json"); err != nil {
			return nil, fmt.Errorf("wirecheck: schema of %s: %w", name, err)
		}
	}
	return all, nil
})
