package updater_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
)

// printer replaces a processors.Publisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Printf("%s %s %q\n", r.Topic, r.Key, r.Value)
	}
	return nil
}

// An updater that keeps what users say about themselves. The group needs the topics of topics.WithMemoir.
func Example() {
	facts := updater.Scripted(func(message string) string {
		if strings.HasPrefix(message, "I ") {
			return "The user said: " + message
		}
		return ""
	})
	w, err := updater.New("pilot", printer{}, facts, updater.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// w.Run(ctx, brokers) takes snapshots from the topic; here one is passed directly.
	ended := record(`{"session_id":"s","user_id":"mira","memoir_context":"Skipper of the Alba",` +
		`"think_response":{"previous_messages":[{"role":"user","content":"I like berth N4"}]}}`)
	ended.Timestamp = time.Now()
	if err := w.Handle(context.Background(), ended); err != nil {
		fmt.Println(err)
	}
	// Output: pilot-memoir-context mira "Skipper of the Alba\nThe user said: I like berth N4"
}
