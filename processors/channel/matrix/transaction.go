package matrix

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	// maxTransaction is the largest transaction, in bytes. Homeservers send at most 100 events of 64 KiB.
	maxTransaction = 8 << 20
	// transactions is how many handled transactions are remembered.
	transactions = 1000
)

// Handler returns the handler of the application service API (https://spec.matrix.org/latest/application-service-api/) at its root,
// which passes the messages of transactions to a receiver, in order. A request without the homeserver's token is answered with
// 401 or 403, before its body is read, and a body over 8 MiB with 413. If the receiver returns an error the answer is 503: the
// homeserver sends the transaction again, and the events that were handled have the same IDs. A transaction that was handled is
// answered with 200 again. It returns an error if Config.HomeserverToken is empty.
func (a *Adapter) Handler(to adapter.Receiver) (http.Handler, error) {
	if a.config.HomeserverToken == "" {
		return nil, errors.New("matrix: an application service needs Config.HomeserverToken")
	}
	handled, _ := lru.New[string, struct{}](transactions) // fails for a size below 1
	door := platform.NewDoor(platform.DoorConfig{Method: http.MethodPut, Limit: maxTransaction, Logger: a.config.Logger})
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "M_UNRECOGNIZED") })
	mux.HandleFunc("POST /_matrix/app/v1/ping", a.authorized(door, func(w http.ResponseWriter, _ *http.Request) { done(w) }))
	mux.HandleFunc("/_matrix/app/v1/transactions/{id}", a.authorized(door, func(w http.ResponseWriter, r *http.Request) {
		body, ok := door.Read(w, r)
		if !ok {
			return
		}
		id := r.PathValue("id")
		if len(id) > maxEventID {
			refuse(w, http.StatusBadRequest, "M_INVALID_PARAM")
			return
		}
		if handled.Contains(id) {
			done(w)
			return
		}
		var t struct {
			Events []jsontext.Value `json:"events"`
		}
		if err := platform.Decode(body, &t); err != nil {
			refuse(w, http.StatusBadRequest, "M_NOT_JSON")
			return
		}
		for _, raw := range t.Events {
			if err := a.receive(r.Context(), raw, "", door.Receiver(to)); err != nil {
				refuse(w, http.StatusServiceUnavailable, "M_UNKNOWN")
				return
			}
		}
		handled.Add(id, struct{}{})
		done(w)
	}))
	return mux, nil
}

// authorized lets requests of the homeserver through
// (https://spec.matrix.org/latest/application-service-api/#authorization).
func (a *Adapter) authorized(door *platform.Door, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, ok := platform.BearerToken(r.Header)
		switch {
		case !ok:
			refuse(w, http.StatusUnauthorized, "M_UNAUTHORIZED")
		case !platform.EqualSecret(token, a.config.HomeserverToken):
			if door.Limited(w, r) {
				refuse(w, http.StatusTooManyRequests, "M_LIMIT_EXCEEDED")
				return
			}
			refuse(w, http.StatusForbidden, "M_FORBIDDEN")
		default:
			next(w, r)
		}
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errcode":"`+code+`"}`)
}

func done(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{}`)
}
