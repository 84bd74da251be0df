package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/crewhttp"
	"github.com/turntable-streams/turntable/processors/httpserver"
)

// entrance is the door for people, on a port of this machine.
type entrance struct {
	address string // host:port
	token   string // a caller with this token has all rights
	index   *crewhttp.Index
	cancel  context.CancelFunc
	group   *errgroup.Group
	ended   <-chan struct{} // a part has failed, or stop was called
}

// openDoor serves the door until stop is called. Only requests with the token are accepted, and from browsers only those of pages
// of the door's own origin: the agents have the rights of the user, whose browser shows pages of others.
func openDoor(ctx context.Context, brokers []string, to processors.Publisher, addr string, logger *zap.Logger) (*entrance, error) {
	index, err := crewhttp.NewIndex(workshop, crewhttp.Config{Door: auth.Door{Logger: logger}})
	if err != nil {
		return nil, err
	}
	listener, err := httpserver.Listen(addr)
	if err != nil {
		return nil, err
	}
	e := &entrance{address: listener.Addr().String(), token: rand.Text(), index: index}
	door := auth.Door{Authenticate: e.authenticate, Origins: []string{e.url()}}
	if at := listener.Addr().(*net.TCPAddr); at.IP.IsLoopback() {
		door.Hosts = []string{"localhost", at.IP.String()}
	}
	handler, err := crewhttp.New(index, to, crewhttp.Config{Door: door})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, e.cancel = context.WithCancel(ctx)
	e.group, ctx = errgroup.WithContext(ctx)
	e.ended = ctx.Done()
	e.group.Go(func() error { return index.Run(ctx, brokers) })
	e.group.Go(func() error { return httpserver.Serve(ctx, httpserver.New(handler), listener, 5*time.Second) })
	return e, nil
}

func (e *entrance) url() string { return "http://" + e.address }

// socket is the URL of the WebSocket, with the token.
func (e *entrance) socket() string {
	return "ws://" + e.address + crewhttp.SocketPath + "?token=" + e.token
}

// authenticate accepts the token.
func (e *entrance) authenticate(r *http.Request) (auth.Caller, error) {
	token, err := auth.Bearer(r)
	if err != nil {
		return auth.Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(e.token)) != 1 {
		return auth.Caller{}, auth.ErrRejected
	}
	return auth.Caller{UserID: "person", Rights: auth.AllRights}, nil
}

// await waits until the door can answer.
func (e *entrance) await(ctx context.Context) error {
	select {
	case <-e.index.Ready():
		return nil
	case <-e.ended:
		return e.group.Wait()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *entrance) stop() error {
	e.cancel()
	return e.group.Wait()
}
