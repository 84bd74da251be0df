package processors_test

import (
	"fmt"

	"github.com/turntable-streams/turntable/processors"
)

// Every process that follows a topic sees all of it, from when it runs.
func ExampleFollower() {
	follower, err := processors.NewFollower([]string{"localhost:9092"}, []string{"support-message-output"},
		func(r processors.Inbound) { fmt.Println(string(r.Key), len(r.Value)) })
	if err != nil {
		fmt.Println(err)
		return
	}
	select { // follower.Run(ctx) would begin, and close it when every partition is read
	case <-follower.Ready():
	default:
		fmt.Println("not yet")
	}
	// Output: not yet
}
