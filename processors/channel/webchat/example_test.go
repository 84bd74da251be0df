package webchat_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/webchat"
	"github.com/turntable-streams/turntable/topics"
)

// In a program the receiver is a channel.Bridge, Authenticate is one of auth.APIKeys or jwt.Tokens,
// and answers come from the sink.
func Example() {
	received := make(chan topics.Origin, 1)
	chat, err := webchat.New(webchat.Config{
		Account:      "site",
		Authenticate: func(*http.Request) (auth.Caller, error) { return auth.Caller{UserID: "ada"}, nil },
	}, adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		received <- in.Origin
		return nil
	}))
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(chat)
	defer server.Close()
	defer chat.Close()

	ctx := context.Background()
	browser, _, err := ws.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = browser.CloseNow() }()
	show := func() {
		_, frame, err := browser.Read(ctx)
		fmt.Println(string(frame), err)
	}
	show()
	if err := browser.Write(ctx, ws.MessageText, []byte(`{"type":"message","id":"c1","content":"Hello"}`)); err != nil {
		panic(err)
	}
	show()
	if _, err := chat.Send(ctx, adapter.Chunk{To: <-received, Text: "Hi", Format: "markdown", Key: "d/0", Count: 1}); err != nil {
		panic(err)
	}
	show()
	// Output:
	// {"type":"connected","user":"ada"} <nil>
	// {"type":"accepted","id":"c1"} <nil>
	// {"type":"message","key":"d/0","content":"Hi","format":"markdown","in_reply_to":"c1","index":0,"count":1} <nil>
}
