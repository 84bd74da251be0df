package platform

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes a request with the JSON of body, or without a body if it is nil, and a bearer token if token is not empty. Its error
// is always an *adapter.Failure, for a network error only: every status is an Answer. The error does not contain the URL.
func Do(ctx context.Context, client *http.Client, method, url, token string, body any) (Answer, error) {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return DoWith(ctx, client, method, url, header, body)
}

// DoWith is Do with headers of the adapter.
func DoWith(ctx context.Context, client *http.Client, method, url string, header http.Header, body any) (Answer, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body, jsontext.AllowInvalidUTF8(true)); err != nil {
			return Answer{}, &adapter.Failure{Reason: "request cannot be made", Final: true}
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, &adapter.Failure{Reason: "request cannot be made", Final: true}
	}
	if r.Header = header.Clone(); body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return Exchange(client, r)
}

// Exchange makes a request. Its error is an *adapter.Failure, for a network error only, and does not contain the URL. After an error
// in the middle of the body the answer has its status and header.
func Exchange(client *http.Client, r *http.Request) (Answer, error) {
	response, err := client.Do(r)
	if err != nil {
		return Answer{}, Failure(err)
	}
	defer func() { _ = response.Body.Close() }() // the body is read
	a := Answer{Status: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return a, Failure(err)
	}
	return a, nil
}

// ID returns the member id of the answer to a sent message, empty if it has none: it was sent, also if the answer cannot be read.
func (a Answer) ID() string {
	var sent struct {
		ID string `json:"id"`
	}
	if Decode(a.Body, &sent) != nil {
		return ""
	}
	return sent.ID
}

// Decode reads the JSON of an answer or an event. Unknown members are ignored; of a repeated member the last one counts. The
// error may quote the JSON.
func Decode(raw []byte, into any) error {
	return json.Unmarshal(raw, into, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// HeaderValue reports whether a secret can be sent in a header: it is not empty and has only printable ASCII characters.
func HeaderValue(secret string) bool {
	for i := range len(secret) {
		if secret[i] <= ' ' || secret[i] >= 0x7f {
			return false
		}
	}
	return secret != ""
}
