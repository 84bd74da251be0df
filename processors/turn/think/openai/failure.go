package openai

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// noQuota is the code of a 429 that does not end by itself: the account has no credit.
const noQuota = "insufficient_quota"

// classify reads an error response of the SDK, or an error in a stream that has begun.
func classify(err error) (provider.Response, bool) {
	var api *sdk.Error
	if errors.As(err, &api) {
		return provider.Response{
			Status: api.StatusCode, Type: typeOf(api.Type, api.Code), Final: api.Code == noQuota || api.Type == noQuota,
		}, true
	}
	var inStream *ssestream.StreamError
	if !errors.As(err, &inStream) {
		return provider.Response{}, false
	}
	failure, _ := topics.Lookup(topics.Raw(inStream.Event.Data), "error")
	word := func(name string) string {
		value, _ := topics.Lookup(failure, name)
		if jsontext.Value(value).Kind() != '"' {
			return ""
		}
		return topics.Text(value)
	}
	kind, code := word("type"), word("code")
	e := provider.Response{
		Status: http.StatusInternalServerError, Type: typeOf(kind, code), Final: code == noQuota || kind == noQuota,
	}
	switch {
	case strings.Contains(kind+code, "rate_limit"):
		e.Status = http.StatusTooManyRequests
	case strings.HasPrefix(kind, "invalid_request"):
		e.Status = http.StatusBadRequest
	}
	return e, true
}

// typeOf returns the code of an error, which is more precise than its type; the type if it has no code.
func typeOf(kind, code string) string {
	if code != "" {
		return code
	}
	return kind
}
