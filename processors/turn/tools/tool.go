package tools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/turntable-streams/turntable/topics"
)

// Tool is a function with what a model has to know to call it. New makes one of a Go function.
type Tool struct {
	Name        string
	Description string
	// InputSchema is the JSON Schema of the input, an object.
	InputSchema topics.Raw
	Func        Func
}

// New returns a tool that calls f with the model's input. The schema of the input is that of the type In, a struct: its names
// and optional fields are those of the json tags, and a jsonschema tag describes a field. An input that does not fit the
// schema, because a required member is missing or one is unknown, is answered with an error that the model can read; f is not called
// then. The result is encoded as for Func; f may return
// Pending if Out is any. CallOf has the rest of the call.
//
// New panics if In has no JSON Schema of an object, as a struct with a channel: the type is part of the program.
func New[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: %T has no JSON Schema: %v", name, *new(In), err))
	}
	if schema.Type != "object" {
		panic(fmt.Sprintf("tools: tool %q: the input %T is no struct", name, *new(In)))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: the schema of %T: %v", name, *new(In), err))
	}
	raw, err := json.Marshal(schema, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: encode the schema of %T: %v", name, *new(In), err))
	}
	return Tool{Name: name, Description: description, InputSchema: topics.Raw(raw), Func: func(ctx context.Context, c Call) (any, error) {
		var in In
		if err := c.Bind(&in); err != nil {
			return nil, err
		}
		var sent map[string]any // stays nil for null, which some models send for no input
		if err := c.Bind(&sent); err != nil {
			return nil, err
		}
		if sent == nil {
			sent = map[string]any{}
		}
		if err := resolved.Validate(sent); err != nil { // the error may quote the input
			return nil, fmt.Errorf("tools: input of %s does not fit its schema: the members are %s, required are %s",
				name, list(slices.Sorted(maps.Keys(schema.Properties))), list(schema.Required))
		}
		return f(context.WithValue(ctx, callKeyOf{}, c), in)
	}}
}

// list returns names for a text.
func list(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

type callKeyOf struct{}

// CallOf returns the call whose function has the context: for its Key, which is the same if the call is repeated, its session
// or its Token. It is the zero Call for another context.
func CallOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKeyOf{}).(Call)
	return c
}
