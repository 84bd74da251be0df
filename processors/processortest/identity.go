package processortest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// identity returns a string that is equal for a record and its repeat.
func (r *record) identity() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %t ", r.key, r.nullKey)
	if id := r.id(); id != "" {
		fmt.Fprintf(&b, "id %q ", id)
	} else {
		for _, name := range slices.Sorted(maps.Keys(r.headers)) {
			fmt.Fprintf(&b, "%q=%q ", name, r.headers[name])
		}
	}
	if r.value == nil {
		b.WriteString("tombstone")
		return b.String()
	}
	fmt.Fprintf(&b, "%q", withoutTimestamps(r.value))
	return b.String()
}

// withoutTimestamps returns a JSON value without the members named "timestamp", at any depth. Bytes that are not JSON are
// returned unchanged.
func withoutTimestamps(raw []byte) []byte {
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return raw
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true))
	if err := copyWithoutTimestamps(enc, dec); err != nil {
		return raw
	}
	return b.Bytes()
}

// copyWithoutTimestamps copies one value token by token, so it does not recurse into deep values.
func copyWithoutTimestamps(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		kind, length := dec.StackIndex(dec.StackDepth())
		isName := kind == jsontext.KindBeginObject && length%2 == 1 && tok.Kind() == jsontext.KindString
		if isName && tok.String() == "timestamp" {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if err := enc.WriteToken(tok); err != nil {
			return err
		}
		if dec.StackDepth() == 0 {
			return nil
		}
	}
}
