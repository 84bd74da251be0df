package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns the codec of T as JSON.
//
// It writes compact JSON with sorted map keys, nil slices as [] and nil maps as {}. It reads JSON as Jackson does: member
// names are case-sensitive, unknown members are ignored, the last of several members with one name is used (objects are
// merged), text after the first value is ignored, and deeper nesting than MaxDepth is poison. Unlike Jackson, it does not
// convert between JSON types: "5" is not an int. The text null is the zero T. Invalid UTF-8 and lone surrogates are poison.
func JSON[T any]() Codec[T] { return Of[T](jsonFormat[T]{}) }

type jsonFormat[T any] struct{}

func (jsonFormat[T]) Marshal(v T) ([]byte, error) {
	raw, err := json.Marshal(&v, json.Deterministic(true))
	if err != nil {
		return nil, JSONCause(err)
	}
	// Such a value could be written but not read back.
	if err := CheckDepth(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

func (jsonFormat[T]) Unmarshal(raw []byte) (T, error) {
	var v, none T
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		return none, ErrEmpty
	}
	if err := CheckDepth(raw); err != nil {
		return none, err
	}
	err := json.Unmarshal(raw, &v, jsontext.AllowDuplicateNames(true))
	if err == nil {
		return v, nil
	}
	first, ok := firstValue(raw)
	if !ok {
		return none, JSONCause(err)
	}
	var w T
	if err := json.Unmarshal(first, &w, jsontext.AllowDuplicateNames(true)); err != nil {
		return none, JSONCause(err)
	}
	return w, nil
}

// firstValue returns the first JSON value of raw, and whether there is one with text after it.
func firstValue(raw []byte) ([]byte, bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if err := d.SkipValue(); err != nil {
		return nil, false
	}
	end := d.InputOffset()
	return raw[:end], end < int64(len(raw))
}

// JSONCause turns an error of the json and jsontext packages, which quotes member names and values, into one that wraps
// ErrEmpty, ErrMalformed, ErrMismatch or ErrDepth and contains only the kind, the Go type and the byte offset. Use it in a
// Format that reads or writes JSON itself. It returns nil for nil.
func JSONCause(err error) error {
	if err == nil {
		return nil
	}
	semantic, isSemantic := errors.AsType[*json.SemanticError](err)
	syntax, isSyntax := errors.AsType[*jsontext.SyntacticError](err)
	for _, own := range []error{ErrEmpty, ErrMalformed, ErrMismatch, ErrDepth, ErrType, ErrPanic} {
		if !errors.Is(err, own) {
			continue
		}
		if isSemantic || isSyntax {
			return own // an error of this package that the json package wrapped
		}
		return err
	}
	// A semantic error may wrap a syntax error, which is more precise.
	switch {
	case isSyntax && !errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: JSON breaks at byte %d", ErrMalformed, syntax.ByteOffset)
	case isSyntax && syntax.ByteOffset == 0:
		return ErrEmpty
	case isSyntax:
		return fmt.Errorf("%w: JSON ends early at byte %d", ErrMalformed, syntax.ByteOffset)
	case isSemantic:
		return mismatch(semantic)
	case errors.Is(err, io.EOF):
		return ErrEmpty
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: JSON ends early", ErrMalformed)
	default:
		return ErrMismatch
	}
}

func mismatch(e *json.SemanticError) error {
	text := "JSON"
	if kind := kindName(e.JSONKind); kind != "" {
		text += " " + kind
	}
	if e.GoType != nil {
		text += ", Go " + nameOf(e.GoType)
	}
	return fmt.Errorf("%w: %s, byte %d", ErrMismatch, text, e.ByteOffset)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 'f', 't':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{', '}':
		return "object"
	case '[', ']':
		return "array"
	default:
		return ""
	}
}
