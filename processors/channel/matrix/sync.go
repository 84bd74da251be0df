package matrix

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// Since keeps the position of a bot in its events. Its methods are called by one goroutine at a time.
type Since interface {
	// Load returns the last stored position, empty if there is none: Run then starts at the present.
	Load(ctx context.Context) (string, error)
	// Store stores a position, which is at most a few kilobytes of ASCII. If it returns an error, the events before the position
	// are received again, which is harmless.
	Store(ctx context.Context, position string) error
}

// Memory is a Since that forgets with the process.
type Memory struct{ position string }

// NewMemory returns a Memory without a position.
func NewMemory() *Memory { return &Memory{} }

// Load implements Since.
func (m *Memory) Load(context.Context) (string, error) { return m.position, nil }

// Store implements Since.
func (m *Memory) Store(_ context.Context, position string) error {
	m.position = position
	return nil
}

const (
	// pollTimeout is how long the homeserver holds a sync open while there are no events.
	pollTimeout = 30 * time.Second
	// filter asks for messages only, the newest 50 of each room
	// (https://spec.matrix.org/latest/client-server-api/#filtering).
	filter = `{"presence":{"types":[]},"account_data":{"types":[]},"room":{"timeline":{"types":["m.room.message"],"limit":50},` +
		`"state":{"types":[]},"ephemeral":{"types":[]},"account_data":{"types":[]}}}`
)

// syncResponse is https://spec.matrix.org/latest/client-server-api/#get_matrixclientv3sync.
type syncResponse struct {
	Next  string `json:"next_batch"`
	Rooms struct {
		Join map[string]struct {
			Timeline struct {
				Events []jsontext.Value `json:"events"`
			} `json:"timeline"`
		} `json:"join"`
	} `json:"rooms"`
}

// Run passes the messages in the bot's rooms to a receiver, those of a room in order, until ctx ends; it then returns nil. The
// position is stored after the receiver took all messages before it: after an error they are received again. Of the messages of a
// pause, at most the newest 50 of each room are received. After a failed request Run waits, from one second to one minute, or as
// long as the homeserver says. Run must be running only once per bot.
func (a *Adapter) Run(ctx context.Context, to adapter.Receiver) error {
	return platform.Poll(ctx, a.config.Clock, a.config.Logger, func(ctx context.Context) (bool, error) { return false, a.sync(ctx, to) })
}

// sync makes one sync and passes on what it has. The first one has only the position of the present.
func (a *Adapter) sync(ctx context.Context, to adapter.Receiver) error {
	since, err := a.config.Since.Load(ctx)
	if err != nil {
		return &adapter.Failure{Reason: "position cannot be loaded"}
	}
	query := url.Values{"filter": {filter}, "timeout": {"0"}}
	if since != "" {
		query.Set("since", since)
		query.Set("timeout", strconv.FormatInt(pollTimeout.Milliseconds(), 10))
	}
	answer, err := a.call(ctx, a.poll, http.MethodGet, "/sync?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	var s syncResponse
	if err := platform.Decode(answer.Body, &s); err != nil || s.Next == "" {
		return &adapter.Failure{Reason: "response cannot be read"}
	}
	if since != "" {
		for _, room := range slices.Sorted(maps.Keys(s.Rooms.Join)) {
			for _, raw := range s.Rooms.Join[room].Timeline.Events {
				if err := a.receive(ctx, raw, room, to); err != nil {
					a.config.Logger.Warn("matrix: event was not handled; it is received again")
					return &adapter.Failure{Reason: "event was not handled"}
				}
			}
		}
	}
	if err := a.config.Since.Store(ctx, s.Next); err != nil {
		return &adapter.Failure{Reason: "position cannot be stored"}
	}
	return nil
}
