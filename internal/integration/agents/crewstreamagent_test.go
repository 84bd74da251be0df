package agents

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// streamRate is the environment variable that makes the test binary an agent that streams so many updates per second.
const streamRate = "TURNTABLE_STREAM_RATE"

// streamMark separates the times in the text of a streaming agent.
const streamMark = "@"

// stream is an agent on standard input and output. Its prompt is answered by text chunks until it is cancelled. Each has the time
// at which it was written.
func stream(rate string) {
	perSecond, _ := strconv.Atoi(rate)
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	write := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(out, format+"\n", args...)
		_ = out.Flush()
	}
	cancelled := make(chan struct{})
	var once sync.Once
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     jsontext.Value `json:"id"`
			Method string         `json:"method"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}`, m.ID)
		case "session/new":
			write(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`, m.ID)
		case "session/cancel":
			once.Do(func() { close(cancelled) })
		case "session/prompt":
			go func() {
				ticker := time.NewTicker(time.Second / time.Duration(perSecond))
				defer ticker.Stop()
				for {
					select {
					case <-cancelled:
						write(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, m.ID)
						return
					case now := <-ticker.C:
						write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`+
							`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d%s some words of text "}}}}`,
							now.UnixNano(), streamMark)
					}
				}
			}()
		}
	}
}
