package main

import (
	"context"
	"os/exec"
	"time"
)

const binary = "github.com/placet-dev/placet/cmd/placet"

// start measures how long the binary takes to be there.
func start(ctx context.Context, b *bench) error {
	b.title("start: placet version (target: under 50 ms)")
	path := b.path("placet")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, binary).CombinedOutput(); err != nil {
		b.line("not measured, %s does not build: %s", binary, out)
		return nil
	}
	var took []float64
	for range 21 {
		began := time.Now()
		if err := exec.CommandContext(ctx, path, "version").Run(); err != nil {
			return err
		}
		took = append(took, float64(time.Since(began)))
	}
	b.line("median of %d: %.1f ms", len(took), median(took)/1e6)
	return nil
}
