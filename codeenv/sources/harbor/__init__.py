"""What a Harbor task directory holds, and how its verifier runs in a box."""
