package auth

import (
	"errors"
	"net/http"
	"strings"
)

// ErrNoCredential is wrapped by the error of an Authenticate function that finds no credential of its kind in a request.
// First then calls the next function.
var ErrNoCredential = errors.New("auth: the request has no credential of a known kind")

// ErrRejected is wrapped by the error of an Authenticate function that finds a credential of its kind and does not accept
// it.
var ErrRejected = errors.New("auth: the credential is not accepted")

// Subprotocol is the WebSocket subprotocol that a browser offers together with its credential, because scripts cannot set
// the header Authorization of a WebSocket:
//
//	new WebSocket(url, ["turntable", "turntable.bearer." + token])
//
// The server selects Subprotocol, so that the credential is not in its response. Bearer reads the credential.
const (
	Subprotocol       = "turntable"
	subprotocolBearer = "turntable.bearer."
)

// maxBearer is the maximum length of a bearer token, in bytes.
const maxBearer = 8 << 10

// Bearer returns the bearer token of a request, from the header Authorization or, in the handshake of a WebSocket, from the
// header Sec-WebSocket-Protocol (see Subprotocol). Its error wraps ErrNoCredential if there is none, and ErrRejected if
// there is more than one, or one that is empty, longer than 8 KiB or has a character outside of RFC 6750. A token in the
// URL is ignored, because URLs are logged.
func Bearer(r *http.Request) (string, error) {
	tokens := authorizationTokens(r.Header)
	if isWebSocket(r) {
		tokens = append(tokens, subprotocolTokens(r.Header)...)
	}
	switch {
	case len(tokens) == 0:
		return "", ErrNoCredential
	case len(tokens) > 1 || !validBearer(tokens[0]):
		return "", ErrRejected
	}
	return tokens[0], nil
}

func authorizationTokens(h http.Header) (tokens []string) {
	for _, value := range h.Values("Authorization") {
		scheme, token, _ := strings.Cut(value, " ")
		if strings.EqualFold(scheme, "Bearer") {
			tokens = append(tokens, strings.Trim(token, " "))
		}
	}
	return tokens
}

func isWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// subprotocolTokens returns the tokens in the offered subprotocols. Their number is bounded by what Bearer accepts.
func subprotocolTokens(h http.Header) (tokens []string) {
	for _, value := range h.Values("Sec-WebSocket-Protocol") {
		if len(value) > 2*maxBearer {
			return []string{"", ""} // rejected
		}
		for offer := range strings.SplitSeq(value, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(offer), subprotocolBearer); ok {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// validBearer reports whether a token has the form b64token of RFC 6750 and a usable length.
func validBearer(token string) bool {
	if token == "" || len(token) > maxBearer {
		return false
	}
	for i := range len(token) {
		switch b := token[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-._~+/=", b) >= 0:
		default:
			return false
		}
	}
	return true
}

// First returns a function that calls others in order. The first one that finds a credential of its kind decides. Its error
// is final; only after an error that wraps ErrNoCredential is the next function called. If no function finds a credential,
// the error wraps ErrNoCredential.
func First(kinds ...Authenticate) Authenticate {
	return func(r *http.Request) (Caller, error) {
		for _, authenticate := range kinds {
			caller, err := authenticate(r)
			if err == nil || !errors.Is(err, ErrNoCredential) {
				return caller, err
			}
		}
		return Caller{}, ErrNoCredential
	}
}
