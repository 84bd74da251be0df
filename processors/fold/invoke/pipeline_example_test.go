package invoke_test

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
)

// With Gates, requests answer what the turns of the agent wait for. The fold group of the agent has the option of the same
// name, and another process runs its gates.
func ExamplePipelineConfig_gates() {
	brokers := []string{"localhost:9092"}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	pipeline, err := invoke.NewPipeline("support", brokers, publisher, invoke.PipelineConfig{Gates: true, Lookback: 25 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	door, err := invoke.New(pipeline, invoke.Config{}) // a caller who may only answer has the rights auth.Read and auth.Answer
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/invoke", door)
}

// The pipeline of the agent support behind POST /invoke. Another process runs the turn and fold groups of the agent.
func ExampleNewPipeline() {
	brokers := []string{"localhost:9092"}
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	pipeline, err := invoke.NewPipeline("support", brokers, publisher, invoke.PipelineConfig{})
	if err != nil {
		log.Fatal(err)
	}
	door, err := invoke.New(pipeline, invoke.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := pipeline.Run(context.Background()); err != nil {
			log.Print(err)
		}
	}()
	http.Handle("/invoke", door)
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
