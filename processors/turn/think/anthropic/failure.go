package anthropic

import (
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
)

// statuses are the statuses of error types. An error in a stream that has begun has the status 200.
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "authentication_error": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound,
	"rate_limit_error": http.StatusTooManyRequests, "api_error": http.StatusInternalServerError,
	"timeout_error": http.StatusGatewayTimeout, "overloaded_error": 529,
}

// classify reads an error response of the SDK.
func classify(err error) (provider.Response, bool) {
	var api *sdk.Error
	if !errors.As(err, &api) {
		return provider.Response{}, false
	}
	e := provider.Response{Status: api.StatusCode, Type: string(api.Type()), Request: api.RequestID}
	if e.Status == http.StatusOK {
		e.Status = statuses[e.Type]
	}
	return e, true
}
