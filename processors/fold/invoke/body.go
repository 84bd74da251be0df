package invoke

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors/fold"
	"github.com/turntable-streams/turntable/topics"
)

// The errors of invalid bodies. They contain nothing of the body.
var (
	errBodySize   = errors.New("body: too large")
	errBodyRead   = errors.New("body: cannot be read")
	errBodyType   = errors.New("body: want content type application/json")
	errBodySyntax = errors.New("body: want one JSON object")
	errBodyDepth  = errors.New("body: nested too deep")
)

// maxBodyDepth is the maximum nesting depth of a body. It is below fold.MaxDepth because its messages are nested in
// records.
const maxBodyDepth = fold.MaxDepth - 8

// readBody reads a request's body, a JSON object. An empty body is nil if the body is optional.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, optional bool) (topics.Raw, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, errBodySize
	case err != nil:
		return nil, errBodyRead
	case len(raw) == 0 && optional:
		return nil, nil
	case !takesJSON(r.Header.Get("Content-Type")):
		return nil, errBodyType
	}
	return parseBody(raw)
}

// parseBody checks that a body is one JSON object in UTF-8 within maxBodyDepth.
func parseBody(raw []byte) (topics.Raw, error) {
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

// takesJSON reports whether a content type is JSON. A form's content type is not accepted: with it, any web page could
// post here without a CORS preflight.
func takesJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

func bodyStatus(err error) int {
	switch {
	case errors.Is(err, errBodySize):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errBodyType):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, errBodyRead):
		return http.StatusBadRequest
	}
	return http.StatusUnprocessableEntity
}
