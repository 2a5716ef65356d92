package cli

import "github.com/spf13/cobra"

func stub(n string) func(*app) *cobra.Command {
	return func(*app) *cobra.Command { return &cobra.Command{Use: n} }
}

var newDemoCommand, newInitCommand, newConfigCommand, newToolsCommand, newWithdrawCommand, newCancelCommand, newEventsCommand, newVerifyCommand, newCanonCommand, newDigestCommand, newDBCommand, newDoctorCommand, newVersionCommand, newGatewayCommand = stub("demo"), stub("init"), stub("config"), stub("tools"), stub("withdraw"), stub("cancel"), stub("events"), stub("verify"), stub("canon"), stub("digest"), stub("db"), stub("doctor"), stub("version"), stub("gateway")
