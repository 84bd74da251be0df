package invoke

import (
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// The errors of invalid bodies. They contain nothing of the body.
var (
	errBodySize   = errors.New("body: too large")
	errBodyType   = errors.New("body: want content type application/json")
	errBodySyntax = errors.New("body: want one JSON object")
	errBodyDepth  = errors.New("body: nested too deep")
)

// maxBodyDepth is the maximum nesting depth of a body. It is below folder.MaxDepth because its messages are nested in
// records.
const maxBodyDepth = folder.MaxDepth - 8

// bodyOf returns the body of a request, one JSON object in UTF-8 within maxBodyDepth. An empty body is nil if the body is
// optional.
func bodyOf(raw []byte, optional bool) (topics.Raw, error) {
	if len(raw) == 0 && optional {
		return nil, nil
	}
	if codec.Deeper(raw, maxBodyDepth) {
		return nil, errBodyDepth
	}
	body := topics.Raw(raw)
	if kindOf(body) != '{' || !utf8.Valid(raw) ||
		// Repeated names and lone surrogates are common and harmless.
		!jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, errBodySyntax
	}
	return body, nil
}
