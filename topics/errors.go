package topics

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// The causes of a poison value. Errors that wrap them contain field names, kinds and byte offsets, and never quote the
// record.
var (
	// ErrEmpty is the cause of a value of length zero. It is not a tombstone.
	ErrEmpty = errors.New("topics: empty value")
	// ErrNull is the cause of a JSON null in place of a record. It is not a tombstone, because a writer that serializes a
	// nil value by mistake must not delete a session's history.
	ErrNull = errors.New("topics: JSON null in place of a record")
	// ErrSyntax is the cause of a value that is not JSON, or is truncated.
	ErrSyntax = errors.New("topics: not JSON")
	// ErrUTF8 is the cause of a value that is not UTF-8.
	ErrUTF8 = errors.New("topics: not UTF-8")
	// ErrDepth is the cause of a value that is nested deeper than MaxDepth, or than MaxValueDepth if its values are embedded
	// in other records.
	ErrDepth = errors.New("topics: nested too deep")
	// ErrType is the cause of a field or record whose type cannot be converted to the declared type, or that lacks a
	// required field.
	ErrType = errors.New("topics: wrong type")
	// ErrUnknown is the cause of a record that has none of the fields of its type.
	ErrUnknown = errors.New("topics: no known field")
)

func syntax(offset int64) error { return fmt.Errorf("%w at byte %d", ErrSyntax, offset) }

func mismatch(got jsontext.Kind, want string) error {
	return fmt.Errorf("%w: got %s, want %s", ErrType, kindName(got), want)
}

func missing(field string) error { return wrongType(field, "missing") }

func wrongType(field, text string) error { return fmt.Errorf("%w: field %s: %s", ErrType, field, text) }

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
