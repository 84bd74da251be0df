package processors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turntable-streams/turntable/processors"
)

// Every process that follows a topic reads all of its new records.
func ExampleFollower() {
	follower, err := processors.NewFollower([]string{"localhost:9092"}, []string{"support-message-output"},
		func(r processors.Inbound) { fmt.Println(string(r.Key), len(r.Value)) })
	if err != nil {
		log.Fatal(err)
	}
	if err := follower.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
