package openai

import (
	"errors"

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
		kind := api.Code // more precise than the type
		if kind == "" {
			kind = api.Type
		}
		return provider.Response{Status: api.StatusCode, Type: kind, Final: api.Code == noQuota || api.Type == noQuota}, true
	}
	var inStream *ssestream.StreamError
	if errors.As(err, &inStream) {
		return provider.StreamError(provider.Get(topics.Raw(inStream.Event.Data), "error")), true
	}
	return provider.Response{}, false
}
