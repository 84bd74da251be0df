package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
	"github.com/turntable-streams/turntable/topics"
)

// acknowledgement is how long the brokers of this program take for a record, and its agent for a turn.
const acknowledgement = 5 * time.Millisecond

// secretVariable has the secret of callback tokens, which parent and child share.
const secretVariable = "TURNTABLE_HOSTILE_SECRET"

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// acknowledging acknowledges every record.
type acknowledging struct{}

func (acknowledging) Publish(context.Context, ...processors.Outbound) error {
	time.Sleep(acknowledgement)
	return nil
}

// identify accepts a bearer token as the user's name. Users may use the sessions that begin with their name.
func identify(r *http.Request) (auth.Caller, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || name == "" {
		return auth.Caller{}, errors.New("no token")
	}
	return auth.Caller{UserID: name, MayUse: func(session string) bool { return strings.HasPrefix(session, name) }}, nil
}

// handler returns one of the doors, with its default limits.
func handler(name string, brokers []string) (http.Handler, error) {
	switch name {
	case "chat", "callback":
		return turnhttp.New(agent, acknowledging{}, turnhttp.Config{Door: identified, CallbackSecrets: []string{os.Getenv(secretVariable)}})
	case "invoke":
		buffered, err := invoke.NewBuffered(invoke.AgentFunc(func(context.Context, invoke.Request) (invoke.Stream, error) {
			time.Sleep(acknowledgement)
			return &answer{}, nil
		}), invoke.BufferConfig{})
		if err != nil {
			return nil, err
		}
		return invoke.New(buffered, invoke.Config{Door: identified})
	case "websocket":
		return websocket.New(agent, websocket.Config{Door: identified})
	case "channel":
		return channelDoor()
	case "gate", "delegation", "crew", "peer":
		return followingDoor(name, brokers)
	}
	return nil, fmt.Errorf("no door has the name %q", name)
}

// answer is a turn of one event.
type answer struct{ told bool }

func (a *answer) Next(context.Context) (invoke.Item, error) {
	if a.told {
		return invoke.Item{}, io.EOF
	}
	a.told = true
	e, err := folder.DecodeEvent(topics.Raw(`{"type":"done","data":{"type":"done"}}`))
	return invoke.Item{Event: e}, err
}
func (*answer) End() folder.End { return folder.End{} }
func (*answer) Close() error    { return nil }

// serve serves a door and its statistics until standard input ends. It prints the addresses of both.
func serve(name string, brokers []string) error {
	h, err := handler(name, brokers)
	if err != nil {
		return err
	}
	l, err := httpserver.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	shown, err := httpserver.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	var peak atomic.Uint64
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			peak.Store(max(peak.Load(), memory()))
		}
	}()
	stats := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC()
		fmt.Fprintf(w, "%d %d\n", peak.Load(), runtime.NumGoroutine())
	})
	served := make(chan error, 2)
	go func() { served <- httpserver.New(h).Serve(l) }()
	go func() { served <- httpserver.New(stats).Serve(shown) }()
	fmt.Println(l.Addr(), shown.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		served <- nil
	}()
	return <-served
}

// memory is what the process has from the operating system and has not returned.
func memory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
