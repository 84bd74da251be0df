package telegram_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/telegram"
)

func Example() {
	bot, err := telegram.New(telegram.Config{
		Account: "main", Token: "4242:AAE-token", Username: "turntable_bot", Secret: "a-long-webhook-secret",
	})
	if err != nil {
		panic(err)
	}
	defer bot.Close()
	// In a program the receiver is the bridge, and bot is an account of the transport.
	receiver := adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
		fmt.Printf("%s wrote %q in %s\n", in.Origin.UserName, in.Text, in.Origin.Recipient)
		return nil
	})
	webhook, err := bot.Handler(receiver) // or bot.Run(ctx, receiver), which needs no public URL
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/channels/telegram", strings.NewReader(
		`{"update_id":1,"message":{"message_id":5,"from":{"id":9,"first_name":"Ann"},"chat":{"id":9,"type":"private"},"text":"hello"}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", "a-long-webhook-secret")
	webhook.ServeHTTP(httptest.NewRecorder(), r)
	// Output: Ann wrote "hello" in 9
}
