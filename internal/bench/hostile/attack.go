package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	ws "github.com/coder/websocket"
)

// attack is one kind of hostile client: it uses a connection until the door or ctx ends it.
type attack struct {
	name string
	run  func(ctx context.Context, c net.Conn, door string, n int)
}

// pause is the time between the bytes, or the requests, of a hostile client.
const pause = time.Second

var attacks = []attack{
	{"slow headers", func(ctx context.Context, c net.Conn, door string, _ int) {
		trickle(ctx, c, "POST "+pathOf(door)+" HTTP/1.1\r\nHost: x\r\n", "X-A: b\r\n")
	}},
	{"slow bodies, no credential", func(ctx context.Context, c net.Conn, door string, _ int) {
		trickle(ctx, c, head(door, "", 1<<20), strings.Repeat("x", 4<<10))
	}},
	{"slow bodies, valid credential", func(ctx context.Context, c net.Conn, door string, n int) {
		trickle(ctx, c, head(door, mallory(n), 1<<20), strings.Repeat("x", 4<<10))
	}},
	{"half-open sockets", func(ctx context.Context, c net.Conn, _ string, _ int) { trickle(ctx, c, "", "") }},
	{"huge headers", func(ctx context.Context, c net.Conn, door string, _ int) {
		repeat(ctx, c, "POST "+pathOf(door)+" HTTP/1.1\r\nHost: x\r\nAccept: "+strings.Repeat(",", 1<<20)+"\r\n\r\n")
	}},
	{"deep JSON", func(ctx context.Context, c net.Conn, door string, n int) {
		const depth = 200_000
		repeat(ctx, c, head(door, mallory(n), 2*depth)+strings.Repeat("[", depth)+strings.Repeat("]", depth))
	}},
	{"forged event IDs", func(ctx context.Context, c net.Conn, door string, n int) {
		if door == "websocket" {
			forgeFrames(ctx, c, n)
			return
		}
		repeat(ctx, c, fmt.Sprintf("GET %s?session_id=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nLast-Event-ID: turn%d.1.1\r\n\r\n",
			pathOf(door), mallory(n), mallory(n), n))
	}},
}

// mallory is the name of a hostile caller with a valid credential: there are ten.
func mallory(n int) string { return fmt.Sprintf("mallory-%d", n%10) }

// head is the head of a request with a body.
func head(door, user string, length int) string {
	credential := ""
	if user != "" {
		credential = "Authorization: Bearer " + user + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		pathOf(door), credential, length)
}

// trickle sends first, and then more again and again.
func trickle(ctx context.Context, c net.Conn, first, more string) {
	_, err := io.WriteString(c, first)
	ended := drain(c)
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-time.After(pause):
		}
		_, err = io.WriteString(c, more)
	}
}

// repeat sends a request again and again and does not wait for the answers.
func repeat(ctx context.Context, c net.Conn, request string) { trickle(ctx, c, request, request) }

// drain reads the answers and closes ended at their end.
func drain(c net.Conn) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c)
	}()
	return ended
}

// forgeFrames subscribes with event IDs that no server has sent.
func forgeFrames(ctx context.Context, c net.Conn, n int) {
	socket, err := upgrade(ctx, c, mallory(n))
	if err != nil {
		return
	}
	defer func() { _ = socket.CloseNow() }()
	go func() {
		for {
			if _, _, err := socket.Read(ctx); err != nil {
				return
			}
		}
	}()
	for i := 0; ; i++ {
		frame := fmt.Sprintf(`{"type":"subscribe","session_id":"%s-%d","last_event_id":"0/0/%d/e~%d.0.%d"}`, mallory(n), n, i, n, time.Now().UnixMilli())
		if err := socket.Write(ctx, ws.MessageText, []byte(frame)); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// attackAll keeps n hostile connections to an address open until ctx ends, and returns when they are closed.
func attackAll(ctx context.Context, door, address string, n int) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			for ctx.Err() == nil {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					attacks[i%len(attacks)].run(ctx, c, door, i)
					stop()
					_ = c.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	running.Wait()
}
