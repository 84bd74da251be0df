package voice_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/voice"
	"github.com/turntable-streams/turntable/topics"
)

// provider stands for a speech provider, which is called over HTTP.
type provider struct{}

func (provider) Synthesize(_ context.Context, text string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("audio of: " + text)), nil
}

// line stands for the media connection of a call.
type line struct{}

func (line) Play(_ context.Context, audio []byte) error {
	fmt.Println(string(audio))
	return nil
}

// In a program the receiver is a channel.Bridge, and answers come from the sink.
func Example() {
	var asked topics.Origin
	calls, err := voice.New(voice.Config{Account: "hotline", Synthesizer: provider{}},
		adapter.ReceiverFunc(func(_ context.Context, in adapter.Inbound) error {
			asked = in.Origin
			return nil
		}))
	if err != nil {
		panic(err)
	}
	defer calls.Close()
	ctx := context.Background()
	call, err := calls.Begin("CA1", voice.Caller{ID: "+4912345"}, line{})
	if err != nil {
		panic(err)
	}
	if err := call.Heard(ctx, voice.Utterance{ID: "1", Text: "What is in my inbox?"}); err != nil {
		panic(err)
	}
	_, err = calls.Send(ctx, adapter.Chunk{To: asked, Text: "Two mails.", Key: "d/0", Count: 1})
	fmt.Println(err)
	call.End()
	_, err = calls.Send(ctx, adapter.Chunk{To: asked, Text: "Three mails.", Key: "d/1", Count: 1})
	fmt.Println(err)
	// Output:
	// audio of: Two mails.
	// <nil>
	// channel: not sent: call has ended
}
