package processortest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// identity is equal for a record and its repeat.
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
	fmt.Fprintf(&b, "%q", untimed(r.value))
	return b.String()
}

// untimed is a JSON value without the members that are named "timestamp", at any depth; other bytes stay as they are.
func untimed(raw []byte) []byte {
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return raw
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true))
	if err := copyUntimed(enc, dec); err != nil {
		return raw
	}
	return b.Bytes()
}

// copyUntimed copies one value token by token, however deep it is.
func copyUntimed(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
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
