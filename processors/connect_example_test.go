package processors_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

func ExampleConnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := processors.Connect(ctx, []string{"localhost:9092"})
	if err != nil {
		log.Fatal(err) // names the cause and what to check
	}
	defer client.Close()
	fmt.Println(client.Topics())
}

// The topic of a table has the rows and their parts.
func ExampleTableKey() {
	for _, key := range []string{"session-1", "session-1\x003"} {
		fmt.Println(processors.TableKey(key))
	}
	// Output:
	// session-1 0 false
	// session-1 3 true
}
