package compact_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/compact"
	"github.com/turntable-streams/turntable/topics"
)

// printer replaces a processors.Publisher.
type printer struct{}

func (printer) Publish(_ context.Context, records ...processors.Outbound) error {
	for _, r := range records {
		fmt.Println(r.Topic, r.Key, string(r.Headers["turntable.id"]))
	}
	return nil
}

// A compactor that keeps the questions. The turn needs turn.Config.Compaction, and the topics topics.WithCompaction.
func Example() {
	questions := compact.Func(func(_ context.Context, c compact.Conversation) (compact.Summary, error) {
		var asked []string
		for _, m := range c.Messages {
			if *m.Role == "user" {
				asked = append(asked, topics.Text(m.Content))
			}
		}
		return compact.Summary{Text: "The user asked: " + strings.Join(asked, "; ")}, nil
	})
	worker, err := compact.New("pilot", printer{}, questions, compact.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// worker.Run(ctx, brokers) takes requests from the topic; here one is passed directly.
	request := record(`{"session_id":"s","compaction_id":"turn/0/compaction/0","messages":[{"role":"user","content":"Which berth?"}]}`)
	request.Timestamp = time.Now()
	if err := worker.Handle(context.Background(), request); err != nil {
		fmt.Println(err)
	}
	// Output: pilot-compaction-result s turn/0/compaction/0/result
}
