#!/bin/sh
# Creates the accounts of a deployment in operator mode, whose clients receive
# the rights that helixd issues. Run it once with the operator as nsc's current one. It leaves
# helixd.creds and subscribers.nk in the current folder; both are secret, and
# helixd's alone.
set -eu
umask 077

# What helixd stores, messages between its nodes, and what it needs of JetStream.
publish='helix.log.>,helix.seg.>,helix.floor.>,helix.erased.>,helix.blob.>,helix.places.>,helix.snap.>,helix.runs.>,helix.spent.>,helix.node.>'
publish="$publish"',$JS.API.INFO,$JS.API.STREAM.NAMES,$JS.API.STREAM.INFO.*,$JS.API.STREAM.CREATE.*,$JS.API.STREAM.UPDATE.*'
publish="$publish"',$JS.API.STREAM.MSG.GET.*,$JS.API.DIRECT.GET.>,$JS.API.STREAM.MSG.DELETE.*,$JS.API.STREAM.PURGE.*'
publish="$publish"',$JS.API.CONSUMER.CREATE.*.*,$JS.API.CONSUMER.MSG.NEXT.*.*,$JS.API.CONSUMER.DELETE.*.*'
publish="$publish"',$SYS.REQ.ACCOUNT.PING.STATZ'
subscribe='helix.live.>,helix.node.>,_INBOX.>'

# helixd and its log. Add no other user: a user with JetStream can read every
# session, whatever its other permissions are.
nsc add account --name HELIX
nsc edit account --name HELIX --js-disk-storage -1 --js-mem-storage -1 --js-streams -1 --js-consumer -1
nsc add export --account HELIX --name live --subject 'helix.live.>' --private
nsc add user --account HELIX --name helixd --allow-pub "$publish" --allow-sub "$subscribe" --allow-pub-response
nsc generate creds --account HELIX --name helixd > helixd.creds

# Clients that receive single sessions: no JetStream, one import, and users that
# helixd creates with a signing key.
nsc generate nkey --account > subscribers.keys
sed -n 1p subscribers.keys > subscribers.nk
nsc add account --name HELIX_SUBSCRIBERS
nsc edit account --name HELIX_SUBSCRIBERS --js-disable --exports 0 --disallow-bearer --sk "$(sed -n 2p subscribers.keys)"
rm subscribers.keys
subscribers=$(nsc describe account --name HELIX_SUBSCRIBERS --field sub | tr -d '"')
nsc generate activation --account HELIX --subject 'helix.live.>' --target-account "$subscribers" --output-file live.activation
nsc add import --account HELIX_SUBSCRIBERS --token live.activation
rm live.activation

echo "nats.subscribers.account: $subscribers"
