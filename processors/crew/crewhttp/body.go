package crewhttp

import (
	"bytes"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/topics"
)

var (
	errBody = errors.New("body is not a JSON object with the members of this request")
	errKey  = errors.New("Idempotency-Key is longer than 256 bytes or has characters that are not printable")
)

const (
	// maxBodyDepth is the limit of nesting in a body. It is below that of a record because the values are nested in records.
	maxBodyDepth = topics.MaxValueDepth - 6
	// maxText is the length of the longest text of a message or a task, in bytes.
	maxText = 256 << 10
	// maxPath is the length of the longest path of a file, in bytes.
	maxPath = 4096
)

// read reads the body of a request. It accepts no unknown, repeated or wrongly typed members, so that a typing error is
// reported. Its error does not quote the body. An empty body is an empty object.
func read[T any](body []byte) (value T, err error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return value, nil
	}
	if raw := jsontext.Value(body); codec.Deeper(raw, maxBodyDepth) || !raw.IsValid() || raw.Kind() != '{' {
		return value, errBody
	}
	if json.Unmarshal(body, &value, json.RejectUnknownMembers(true)) != nil {
		return value, errBody
	}
	return value, nil
}

// usable reports whether a text can be an ID or a name: not empty, not longer than an ID, and printable.
func usable(id string) bool {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) {
		return false
	}
	for _, c := range id {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}
