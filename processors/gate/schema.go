package gate

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validate checks a value against a JSON Schema and returns why it is refused, empty if it matches. References to other
// documents are not followed, and the work is bounded: a schema can repeat itself exponentially through references.
func validate(schema, value []byte) (reason string) {
	work := budget(maxSchemaSteps)
	compiled, err := compile(schema, &work)
	if err != nil {
		return "its response schema cannot be used"
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return "its value is not JSON"
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			if thrown != errBudget {
				panic(thrown)
			}
			reason = "its value takes too long to validate"
		}
	}()
	if compiled.Validate(instance) != nil {
		return "its value does not match the response schema"
	}
	return ""
}

// checkSchema returns an error if decisions cannot be validated with a schema.
func checkSchema(schema []byte) error {
	work := budget(maxSchemaSteps)
	_, err := compile(schema, &work)
	return err
}

func compile(schema []byte, work *budget) (*jsonschema.Schema, error) {
	const name = "mem:///schema"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nil) // no document is loaded
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "mem:///budget",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return work, nil
		},
	})
	c.AssertVocabs()
	if err := c.AddResource(name, document); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// budget is how many more times a schema object may be applied to a value.
type budget int

// errBudget is thrown when the budget is spent. An error would not end the validation.
var errBudget = new(int)

// Validate implements jsonschema.SchemaExt: it counts.
func (b *budget) Validate(*jsonschema.ValidatorContext, any) {
	if *b--; *b < 0 {
		panic(errBudget)
	}
}
