package topics

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Causes of a poison value. An error that wraps one names fields, kinds and byte offsets, and never quotes the record.
var (
	// ErrEmpty is a value of zero length, which is no tombstone.
	ErrEmpty = errors.New("topics: empty value")
	// ErrNull is a JSON null in place of a record. A tombstone is a Kafka null: a writer that serialised nothing by
	// mistake must not delete a session's history.
	ErrNull = errors.New("topics: JSON null in place of a record")
	// ErrSyntax is a value that is not JSON, or ends early.
	ErrSyntax = errors.New("topics: not JSON")
	// ErrUTF8 is a value that is not UTF-8.
	ErrUTF8 = errors.New("topics: not UTF-8")
	// ErrDepth is a value that nests deeper than MaxDepth, or than MaxValueDepth where others carry it.
	ErrDepth = errors.New("topics: nested too deep")
	// ErrType is a field, or a whole record, of a type that cannot be converted to the declared one.
	ErrType = errors.New("topics: wrong type")
	// ErrUnknown is a record that has none of the fields of its type.
	ErrUnknown = errors.New("topics: no known field")
)

func syntax(offset int64) error { return fmt.Errorf("%w at byte %d", ErrSyntax, offset) }

func mismatch(got jsontext.Kind, want string) error {
	return fmt.Errorf("%w: got %s, want %s", ErrType, kindName(got), want)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "nothing"
	}
}
