package text_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors/channel/text"
)

func Example() {
	answer := "Berth **N4** is free & open. See [the plan](https://pier.example).\n\n```go\nberth.Book()\nberth.Pay()\n```"
	fmt.Println(text.Render(answer, text.SlackMrkdwn))
	for i, message := range text.Split(answer, text.TelegramHTML, text.Limit{Max: 110, Unit: text.UTF16}) {
		fmt.Printf("--- %d\n%s\n", i, message)
	}
	// Output:
	// Berth *N4* is free &amp; open. See <https://pier.example|the plan>.
	//
	// ```
	// berth.Book()
	// berth.Pay()
	// ```
	// --- 0
	// Berth <b>N4</b> is free &amp; open. See <a href="https://pier.example">the plan</a>.
	// --- 1
	// <pre><code>berth.Book()
	// berth.Pay()</code></pre>
}
