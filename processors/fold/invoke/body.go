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

// What a body can be refused for; nothing of it is quoted.
var (
	errBodySize   = errors.New("body: too large")
	errBodyRead   = errors.New("body: cannot be read")
	errBodyType   = errors.New("body: want content type application/json")
	errBodySyntax = errors.New("body: want one JSON object")
	errBodyDepth  = errors.New("body: nested too deep")
)

// maxBodyDepth is how deep a body may nest: its messages go into records that stand in others.
const maxBodyDepth = fold.MaxDepth - 8

// readBody reads a request's body, a JSON object; nil for one without a body where that is allowed.
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

// parseBody holds that a body is one JSON object of UTF-8 that nests no deeper than the limit.
func parseBody(raw []byte) (topics.Raw, error) {
	if codec.Deeper(raw, maxBodyDepth) {
		return nil, errBodyDepth
	}
	body := topics.Raw(raw)
	if kindOf(body) != '{' || !utf8.Valid(raw) ||
		// Repeated names and half surrogates are common, and nobody's harm.
		!jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, errBodySyntax
	}
	return body, nil
}

// takesJSON: a form's content type would let any web page post here without being asked.
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
