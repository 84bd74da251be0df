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

// A table has the latest row of every key. After Ready, the program has all of them, and it gets every later one.
func ExampleNewTableFollower() {
	rows := map[string]int{}
	follower, err := processors.NewTableFollower([]string{"localhost:9092"}, []string{"support-streams-table"},
		func(r processors.Inbound) { rows[string(r.Key)] = len(r.Value) }) // one partition: it is called by one goroutine
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		<-follower.Ready()
		fmt.Println("caught up")
	}()
	if err := follower.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
