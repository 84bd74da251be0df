package anthropic

import (
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// classify reads an error response of the SDK. An error in a stream that has begun has the status 200.
func classify(err error) (provider.Response, bool) {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return provider.Response{}, false
	}
	e := provider.Response{Status: api.StatusCode, Type: string(api.Type()), Request: api.RequestID}
	if e.Status == http.StatusOK {
		e = provider.StreamError(provider.Get(topics.Raw(api.RawJSON()), "error"))
		e.Request = api.RequestID
	}
	return e, true
}
